#include "data/loader.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {

Loader::Loader(const TokenData& data, const SampleOrder& order, const BatchShape& shape)
    : data_(data), order_(order), shape_(shape) {
  check(shape);
  const uint64_t windows = order.training_windows() + order.validation_windows();
  expect(windows <= window_count(data.count(), order.seq_length()), "an order for this data");
}

void Loader::fill(int64_t step, int64_t micro, int32_t* inputs, int32_t* targets) const {
  expect(step >= 0 && 0 <= micro && micro < micros(), "a micro-batch of this rank");
  const int64_t length = seq_length();
  for (int64_t row = 0; row < rows(); ++row)
    fill_row(order_.training_window(shape_.sample(step, micro, row)), inputs + row * length,
             targets + row * length);
}

int64_t Loader::fill_validation(int64_t first, int32_t* inputs, int32_t* targets) const {
  expect(first >= 0, "a validation window");
  const int64_t length = seq_length();
  const auto windows = static_cast<int64_t>(order_.validation_windows());
  const int64_t filled = std::clamp<int64_t>(windows - first, 0, rows());
  for (int64_t row = 0; row < filled; ++row)
    fill_row(order_.validation_window(static_cast<uint64_t>(first + row)), inputs + row * length,
             targets + row * length);
  std::fill(inputs + filled * length, inputs + rows() * length, 0);
  std::fill(targets + filled * length, targets + rows() * length, -1);
  return filled;
}

void Loader::fill_row(uint64_t window, int32_t* inputs, int32_t* targets) const {
  const uint64_t first = order_.first_token(window);
  data_.copy(first, order_.seq_length(), inputs);
  data_.copy(first + 1, order_.seq_length(), targets);
}

}  // namespace rankine
