#pragma once
#include <cstdint>
#include <span>

#include "data/corpus.h"
#include "data/sample_order.h"

// Fills the micro-batches of one data rank. No call allocates; what a buffer gets depends on its
// arguments and the seed alone.
namespace rankine {

class Loader {
 public:
  // The corpora are of one seq_length, must outlive the loader, and `mix` be made for them.
  // Error{usage} for a `shape` that does not divide, and for a document mask of data that do not
  // say where documents end.
  Loader(std::span<const Corpus> corpora, const SampleMix& mix, const BatchShape& shape,
         bool document_mask = false);

  int64_t micros() const { return shape_.micros(); }  // micro-batches of this rank a step
  int64_t rows() const { return shape_.micro_batch; }
  int64_t seq_length() const { return static_cast<int64_t>(corpora_.front().seq_length()); }
  const SampleMix& mix() const { return mix_; }

  // Whether the micro-batches are to have first_keys.
  bool masks_documents() const { return document_mask_; }
  // The B rows of a micro-batch, [B,T] each.
  void fill(int64_t step, int64_t micro, const WindowRow& rows) const;
  // Validation windows first, first + 1, ... in B rows. Rows past the last one get inputs 0 and
  // targets -1, which count for nothing; returns how many rows hold a window.
  int64_t fill_validation(int64_t first, const WindowRow& rows) const;

 private:
  std::span<const Corpus> corpora_;
  SampleMix mix_;
  BatchShape shape_;
  bool document_mask_;
};

}  // namespace rankine
