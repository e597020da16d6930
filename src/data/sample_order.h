#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"

// Which windows of the corpora are trained on when: arithmetic alone. What a step trains on is a
// function of (seed, step), the same for every layout.
namespace rankine {

// Where `index` goes in a pseudo-random permutation of [0, n), n >= 1, chosen by (key, stream):
// a Feistel network over the next even number of bits, walked until it lands below n.
uint64_t permuted(uint64_t index, uint64_t n, RandomKey key, uint64_t stream);

struct SampleOrderRequest {
  uint64_t windows = 0;            // of the corpus
  uint64_t least_training = 1;     // windows that training needs: the corpus's share of a batch
  double validation_fraction = 0;  // of the windows, at least one when above 0
  uint64_t seed = 0, corpus = 0;   // each corpus has an order of its own
  std::string name = {};           // its first file, for messages
};

// The windows of one corpus: the first are for training, in a new order every epoch; the last for
// validation, in place.
class SampleOrder {
 public:
  // Error{data} when less windows are left for training than it needs.
  explicit SampleOrder(const SampleOrderRequest& request);

  uint64_t training_windows() const { return training_; }
  uint64_t validation_windows() const { return validation_; }
  // The window of the index-th sample of a run, counted over all steps and epochs.
  uint64_t training_window(uint64_t index) const;
  // Likewise of validation, which begins again behind the last.
  uint64_t validation_window(uint64_t index) const { return training_ + index % validation_; }

 private:
  uint64_t training_ = 0, validation_ = 0;
  RandomKey key_;
};

struct Sample {
  uint32_t corpus = 0;
  uint64_t window = 0;
  bool operator==(const Sample&) const = default;
};

// Several corpora with a share of the samples each. Shares are parts of a cycle of samples that
// repeats; within it they are spread evenly.
class SampleMix {
 public:
  static constexpr uint32_t cycle = 10'000;

  // One weight above 0 for each order; their sum does not matter. Error{usage} for a corpus whose
  // share is below one sample in a cycle.
  SampleMix(std::vector<SampleOrder> orders, const std::vector<double>& weights);
  explicit SampleMix(SampleOrder order) : SampleMix(std::vector{order}, {1}) {}

  // The index-th sample of a run.
  Sample training(uint64_t index) const;
  // Likewise of a validation, in the same shares; index < validation_windows(), by which all
  // corpora have been seen once at least.
  Sample validation(uint64_t index) const;
  uint64_t validation_windows() const { return validation_; }
  const SampleOrder& order(size_t corpus) const { return orders_[corpus]; }

 private:
  struct Slot {
    uint32_t corpus, before;  // samples of the corpus earlier in the cycle
  };
  struct Place {
    uint32_t corpus;
    uint64_t index;  // among the corpus's own samples
  };
  Place place_of(uint64_t index) const;

  std::vector<SampleOrder> orders_;
  std::vector<uint32_t> parts_;  // of the cycle
  std::vector<Slot> slots_;
  uint64_t validation_ = 0;
};

// "0.7,0.3" as numbers above 0, as many as there are corpora. Error{usage}.
std::vector<double> parse_weights(const std::string& text, size_t corpora);

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
