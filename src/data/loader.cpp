#include "data/loader.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {

Loader::Loader(std::span<const Corpus> corpora, const SampleMix& mix, const BatchShape& shape)
    : corpora_(corpora), mix_(mix), shape_(shape) {
  check(shape);
  expect(!corpora.empty(), "there is a corpus");
  for (size_t i = 0; i < corpora.size(); ++i) {
    const SampleOrder& order = mix.order(i);
    expect(order.training_windows() + order.validation_windows() <= corpora[i].windows() &&
               corpora[i].seq_length() == corpora[0].seq_length(),
           "an order for these corpora");
  }
}

void Loader::fill(int64_t step, int64_t micro, int32_t* inputs, int32_t* targets) const {
  expect(step >= 0 && 0 <= micro && micro < micros(), "a micro-batch of this rank");
  const int64_t length = seq_length();
  for (int64_t row = 0; row < rows(); ++row)
    fill_row(mix_.training(shape_.sample(step, micro, row)), inputs + row * length,
             targets + row * length);
}

int64_t Loader::fill_validation(int64_t first, int32_t* inputs, int32_t* targets) const {
  expect(first >= 0, "a validation window");
  const int64_t length = seq_length();
  const auto windows = static_cast<int64_t>(mix_.validation_windows());
  const int64_t filled = std::clamp<int64_t>(windows - first, 0, rows());
  for (int64_t row = 0; row < filled; ++row)
    fill_row(mix_.validation(static_cast<uint64_t>(first + row)), inputs + row * length,
             targets + row * length);
  std::fill(inputs + filled * length, inputs + rows() * length, 0);
  std::fill(targets + filled * length, targets + rows() * length, -1);
  return filled;
}

void Loader::fill_row(Sample sample, int32_t* inputs, int32_t* targets) const {
  corpora_[sample.corpus].fill(sample.window, inputs, targets);
}

}  // namespace rankine
