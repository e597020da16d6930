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
  // Error{usage} for a `shape` that does not divide.
  Loader(std::span<const Corpus> corpora, const SampleMix& mix, const BatchShape& shape);

  int64_t micros() const { return shape_.micros(); }  // micro-batches of this rank a step
  int64_t rows() const { return shape_.micro_batch; }
  int64_t seq_length() const { return static_cast<int64_t>(corpora_.front().seq_length()); }
  const SampleMix& mix() const { return mix_; }

  // inputs [B,T] and targets [B,T] of a micro-batch; targets are the tokens that come next.
  void fill(int64_t step, int64_t micro, int32_t* inputs, int32_t* targets) const;
  // Validation windows first, first + 1, ... in B rows. Rows past the last one get inputs 0 and
  // targets -1, which count for nothing; returns how many rows hold a window.
  int64_t fill_validation(int64_t first, int32_t* inputs, int32_t* targets) const;

 private:
  void fill_row(Sample sample, int32_t* inputs, int32_t* targets) const;

  std::span<const Corpus> corpora_;
  SampleMix mix_;
  BatchShape shape_;
};

}  // namespace rankine
