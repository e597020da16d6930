#include "data/sample_order.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

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
    : key_(random_key(request.seed, request.corpus == 0
                                        ? "sample order"
                                        : fmt::format("sample order {}", request.corpus))) {
  if (request.validation_fraction > 0) {
    const double wanted = request.validation_fraction * static_cast<double>(request.windows);
    validation_ = std::min(request.windows, std::max<uint64_t>(1, std::llround(wanted)));
  }
  training_ = request.windows - validation_;
  require(training_ >= std::max<uint64_t>(1, request.least_training), ErrorKind::data,
          "the data '{}' has {} sequences for training ({} for validation), less than its {} of "
          "one global batch; give more data, or a smaller --seq-length or --global-batch-size",
          request.name, training_, validation_, request.least_training);
}

uint64_t SampleOrder::training_window(uint64_t index) const {
  return permuted(index % training_, training_, key_, index / training_);
}

namespace {

// `cycle` cut by the weights; what rounding leaves goes to the largest remainders.
std::vector<uint32_t> parts_of_cycle(const std::vector<double>& weights, uint32_t cycle) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<uint32_t> parts;
  std::vector<std::pair<double, size_t>> remainders;
  uint32_t left = cycle;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double exact = weights[i] / sum * cycle;
    parts.push_back(static_cast<uint32_t>(exact));
    remainders.emplace_back(parts.back() - exact, i);
    left -= parts.back();
  }
  std::sort(remainders.begin(), remainders.end());
  for (uint32_t i = 0; i < left; ++i) ++parts[remainders[i % weights.size()].second];
  for (size_t i = 0; i < weights.size(); ++i)
    require(parts[i] > 0, ErrorKind::usage,
            "--data-weights: {} of {} is less than one sample in {}; leave that corpus out or "
            "give it more",
            weights[i], sum, cycle);
  return parts;
}

}  // namespace

SampleMix::SampleMix(std::vector<SampleOrder> orders, const std::vector<double>& weights)
    : orders_(std::move(orders)), parts_(parts_of_cycle(weights, orders_.size() > 1 ? cycle : 1)) {
  expect(!orders_.empty() && orders_.size() == weights.size(), "a weight for each corpus");
  const auto slots = std::accumulate(parts_.begin(), parts_.end(), uint32_t{0});
  std::vector<uint32_t> taken(orders_.size(), 0);
  for (uint32_t slot = 0; slot < slots; ++slot) {
    // The corpus that is furthest behind its share.
    uint32_t next = 0;
    int64_t most = std::numeric_limits<int64_t>::min();
    for (uint32_t c = 0; c < orders_.size(); ++c) {
      const int64_t behind = int64_t{parts_[c]} * (slot + 1) - int64_t{taken[c]} * slots;
      if (behind > most && taken[c] < parts_[c]) {
        most = behind;
        next = c;
      }
    }
    slots_.push_back({next, taken[next]++});
  }
  for (size_t c = 0; c < orders_.size(); ++c) {
    const uint64_t windows = orders_[c].validation_windows();
    if (windows == 0) {
      validation_ = 0;
      return;
    }
    // The index behind the corpus's last window.
    uint64_t slot = 0;
    while (slots_[slot].corpus != c || slots_[slot].before != (windows - 1) % parts_[c]) ++slot;
    validation_ = std::max(validation_, (windows - 1) / parts_[c] * slots_.size() + slot + 1);
  }
}

SampleMix::Place SampleMix::place_of(uint64_t index) const {
  const auto [corpus, before] = slots_[index % slots_.size()];
  return {corpus, index / slots_.size() * parts_[corpus] + before};
}

Sample SampleMix::training(uint64_t index) const {
  const auto [corpus, own] = place_of(index);
  return {corpus, orders_[corpus].training_window(own)};
}

Sample SampleMix::validation(uint64_t index) const {
  expect(index < validation_, "a validation window");
  const auto [corpus, own] = place_of(index);
  return {corpus, orders_[corpus].validation_window(own)};
}

std::vector<double> parse_weights(const std::string& text, size_t corpora) {
  std::vector<double> weights;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    double value = 0;
    const auto [stop, status] = std::from_chars(text.data() + at, text.data() + end, value);
    require(status == std::errc() && stop == text.data() + end && value > 0 && std::isfinite(value),
            ErrorKind::usage,
            "--data-weights '{}': '{}' is no number above 0; write for example "
            "0.7,0.3",
            text, text.substr(at, end - at));
    weights.push_back(value);
    at = end + 1;
  }
  require(weights.size() == corpora, ErrorKind::usage,
          "--data-weights '{}' has {} numbers for {} paths of --data; give one for each", text,
          weights.size(), corpora);
  return weights;
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
