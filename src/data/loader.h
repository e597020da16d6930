#pragma once
#include <cstdint>

#include "data/sample_order.h"
#include "data/token_source.h"

// Fills the micro-batches of one data rank. No call allocates; what a buffer gets depends on its
// arguments and the seed alone.
namespace rankine {

class Loader {
 public:
  // `data` must outlive the loader, and `order` be made for it. Error{usage} for a `shape` that
  // does not divide.
  Loader(const TokenData& data, const SampleOrder& order, const BatchShape& shape);

  int64_t micros() const { return shape_.micros(); }  // micro-batches of this rank a step
  int64_t rows() const { return shape_.micro_batch; }
  int64_t seq_length() const { return static_cast<int64_t>(order_.seq_length()); }
  const SampleOrder& order() const { return order_; }
  // How often all training windows were seen before this step.
  int64_t epoch(int64_t step) const {
    return static_cast<int64_t>(shape_.sample(step, 0, 0) / order_.training_windows());
  }

  // inputs [B,T] and targets [B,T] of a micro-batch; targets are the tokens that come next.
  void fill(int64_t step, int64_t micro, int32_t* inputs, int32_t* targets) const;
  // Validation windows first, first + 1, ... in B rows. Rows past the last one get inputs 0 and
  // targets -1, which count for nothing; returns how many rows hold a window.
  int64_t fill_validation(int64_t first, int32_t* inputs, int32_t* targets) const;

 private:
  void fill_row(uint64_t window, int32_t* inputs, int32_t* targets) const;

  const TokenData& data_;
  SampleOrder order_;
  BatchShape shape_;
};

}  // namespace rankine
