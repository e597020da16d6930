#pragma once
#include <cstdint>

#include "base/random.h"

// Which windows of the corpus are trained on when: arithmetic alone, without memory. A sample is a
// window of seq_length + 1 tokens; window i begins at token i * seq_length. What a step trains on
// is a function of (seed, step), the same for every layout.
namespace rankine {

// Windows of a corpus; 0 when it is shorter than one.
constexpr uint64_t window_count(uint64_t tokens, uint64_t seq_length) {
  return tokens == 0 ? 0 : (tokens - 1) / seq_length;
}

// Where `index` goes in a pseudo-random permutation of [0, n), n >= 1, chosen by (key, stream):
// a Feistel network over the next even number of bits, walked until it lands below n.
uint64_t permuted(uint64_t index, uint64_t n, RandomKey key, uint64_t stream);

struct SampleOrderRequest {
  uint64_t tokens = 0, seq_length = 0, global_batch = 0;
  double validation_fraction = 0;  // of the windows, at least one when above 0
  uint64_t seed = 0;
};

// The first windows are for training, in a new order every epoch; the last for validation, in
// place.
class SampleOrder {
 public:
  // Error{data} when the corpus has less than one window or training less than one global batch.
  explicit SampleOrder(const SampleOrderRequest& request);

  uint64_t training_windows() const { return training_; }
  uint64_t validation_windows() const { return validation_; }
  uint64_t seq_length() const { return seq_length_; }
  // The window of the index-th sample of a run, counted over all steps and epochs.
  uint64_t training_window(uint64_t index) const;
  // The index-th validation window; index < validation_windows().
  uint64_t validation_window(uint64_t index) const { return training_ + index; }
  uint64_t first_token(uint64_t window) const { return window * seq_length_; }

 private:
  uint64_t seq_length_, training_ = 0, validation_ = 0;
  RandomKey key_;
};

// How a global batch is cut: micro-batch m of data rank r is number m * data_degree + r of the
// step, so that the micro-batches that ranks compute at the same time are neighbours.
struct BatchShape {
  int64_t global_batch = 1, micro_batch = 1;
  int64_t data_rank = 0, data_degree = 1;

  int64_t micros() const { return global_batch / (micro_batch * data_degree); }  // of this rank
  // The index over the whole run of row `row` of this rank's micro-batch `micro` at `step`.
  uint64_t sample(int64_t step, int64_t micro, int64_t row) const {
    return static_cast<uint64_t>(step * global_batch +
                                 (micro * data_degree + data_rank) * micro_batch + row);
  }
};
// Error{usage} when a size is not positive or micro_batch * data_degree does not divide
// global_batch.
void check(const BatchShape& shape);

}  // namespace rankine
