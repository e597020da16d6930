#include "data/sample_order.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace rankine {

uint64_t permuted(uint64_t index, uint64_t n, RandomKey key, uint64_t stream) {
  expect(index < n, "an index below the length of the permutation");
  constexpr uint64_t rounds = 8;
  const int half = std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2);
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 0; round < rounds; ++round) {
      const uint64_t mixed = left ^ (philox(key, right, stream * rounds + round)[0] & mask);
      left = right;
      right = mixed;
    }
    index = left << half | right;
  } while (index >= n);
  return index;
}

SampleOrder::SampleOrder(const SampleOrderRequest& request)
    : seq_length_(request.seq_length), key_(random_key(request.seed, "sample order")) {
  expect(request.seq_length > 0 && request.global_batch > 0, "a sequence length and a batch");
  const uint64_t windows = window_count(request.tokens, seq_length_);
  require(windows > 0, ErrorKind::data,
          "the data has {} tokens, less than one sequence of {} + 1; give more data or a smaller "
          "--seq-length",
          request.tokens, seq_length_);
  if (request.validation_fraction > 0) {
    const double wanted = request.validation_fraction * static_cast<double>(windows);
    validation_ = std::min(windows, std::max<uint64_t>(1, std::llround(wanted)));
  }
  training_ = windows - validation_;
  require(training_ >= request.global_batch, ErrorKind::data,
          "the data has {} sequences of {} tokens for training ({} for validation), less than one "
          "global batch of {}; give more data, or a smaller --seq-length or --global-batch-size",
          training_, seq_length_, validation_, request.global_batch);
}

uint64_t SampleOrder::training_window(uint64_t index) const {
  return permuted(index % training_, training_, key_, index / training_);
}

void check(const BatchShape& shape) {
  require(shape.global_batch > 0 && shape.micro_batch > 0 && shape.data_degree > 0,
          ErrorKind::usage,
          "global batch {}, micro-batch {} and data degree {} must all be positive",
          shape.global_batch, shape.micro_batch, shape.data_degree);
  expect(0 <= shape.data_rank && shape.data_rank < shape.data_degree, "a data rank of the mesh");
  const int64_t once = shape.micro_batch * shape.data_degree;
  const int64_t nearest = std::max<int64_t>(1, (shape.global_batch + once / 2) / once) * once;
  require(shape.global_batch % once == 0, ErrorKind::usage,
          "--global-batch-size {}: must be a multiple of micro-batch {} x data degree {} = {}; "
          "nearest legal value {}",
          shape.global_batch, shape.micro_batch, shape.data_degree, once, nearest);
}

}  // namespace rankine
