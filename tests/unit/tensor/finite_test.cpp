#include "tensor/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace rankine {
namespace {

template <class T>
void expect_found(DType dtype, const std::function<T(float)>& stored, int64_t count,
                  int64_t first) {
  std::vector<T> values(static_cast<size_t>(count), stored(-1.5F));
  EXPECT_EQ(find_non_finite(values.data(), dtype, count).count, 0) << count;
  values[static_cast<size_t>(first)] = stored(std::nanf(""));
  values.back() = stored(-std::numeric_limits<float>::infinity());
  const NonFinite found = find_non_finite(values.data(), dtype, count);
  EXPECT_EQ(found.count, first == count - 1 ? 1 : 2);
  EXPECT_EQ(found.first, first);
  EXPECT_FALSE(std::isfinite(found.value));
  // From any place in memory.
  EXPECT_EQ(find_non_finite(values.data() + first + 1, dtype, count - first - 1).count,
            first == count - 1 ? 0 : 1);
}

TEST(Finite, EveryTypeAndPlace) {
  for (const auto& [count, first] : {std::pair<int64_t, int64_t>{1, 0},
                                     {7, 3},
                                     {2048, 2047},
                                     {2049, 2048},
                                     {10000, 0},
                                     {10000, 7777}}) {
    expect_found<float>(
        DType::f32, [](float x) { return x; }, count, first);
    expect_found<double>(
        DType::f64, [](float x) { return static_cast<double>(x); }, count, first);
    expect_found<Bf16>(DType::bf16, from_float<Bf16>, count, first);
    expect_found<F16>(DType::f16, from_float<F16>, count, first);
  }
}

TEST(Finite, TheLargestAndSmallestNumbersAre) {
  const std::vector<float> values{std::numeric_limits<float>::max(),
                                  -std::numeric_limits<float>::max(),
                                  std::numeric_limits<float>::denorm_min(), 0.0F, -0.0F};
  EXPECT_EQ(find_non_finite(values.data(), DType::f32, std::ssize(values)).count, 0);
  const std::vector<F16> halves{from_float<F16>(65504.0F), from_float<F16>(70000.0F)};
  const NonFinite found = find_non_finite(halves.data(), DType::f16, 2);
  EXPECT_EQ(found.count, 1);
  EXPECT_EQ(found.first, 1);
  EXPECT_TRUE(std::isinf(found.value));
}

TEST(Finite, AFullBlockOfThemIsCounted) {
  const std::vector<float> values(5000, std::nanf(""));
  EXPECT_EQ(find_non_finite(values.data(), DType::f32, 5000).count, 5000);
}

}  // namespace
}  // namespace rankine
