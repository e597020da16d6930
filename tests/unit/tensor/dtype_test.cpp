#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rankine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Bf16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bf16 x{static_cast<uint16_t>(bits)};
    const float f = to_float(x);
    if (std::isnan(f))
      EXPECT_TRUE(std::isnan(to_float(from_float<Bf16>(f)))) << bits;
    else
      EXPECT_EQ(from_float<Bf16>(f).bits, bits);
  }
}

TEST(F16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const F16 x{static_cast<uint16_t>(bits)};
    const float f = to_float(x);
    if (std::isnan(f))
      EXPECT_TRUE(std::isnan(to_float(from_float<F16>(f)))) << bits;
    else
      EXPECT_EQ(from_float<F16>(f).bits, bits) << f;
  }
}

TEST(F16, KnownValues) {
  EXPECT_EQ(to_float(F16{0x3c00}), 1.0f);
  EXPECT_EQ(to_float(F16{0x0001}), 0x1p-24f);
  EXPECT_EQ(to_float(F16{0x7bff}), 65504.0f);
  EXPECT_EQ(to_float(F16{0xfc00}), -infinity);
  EXPECT_EQ(from_float<F16>(65519.0f).bits, 0x7bff);
  EXPECT_EQ(from_float<F16>(65520.0f).bits, 0x7c00);
  EXPECT_EQ(from_float<F16>(0x1p-25f).bits, 0x0000) << "a tie goes to even";
  EXPECT_EQ(from_float<F16>(0x1.8p-24f).bits, 0x0002) << "a tie goes to even";
}

// Rounding goes to the nearest value, ties to the even one.
template <class T>
void check_rounding_between_neighbours(uint16_t last_finite) {
  for (uint16_t bits = 0; bits < last_finite; ++bits) {
    const float low = to_float(T{bits}), high = to_float(T{static_cast<uint16_t>(bits + 1)});
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(from_float<T>(middle).bits, bits % 2 == 0 ? bits : bits + 1) << low;
    EXPECT_EQ(from_float<T>(std::nextafter(middle, low)).bits, bits) << low;
    EXPECT_EQ(from_float<T>(std::nextafter(middle, high)).bits, bits + 1) << low;
  }
}

TEST(F16, RoundsToNearestEven) {
  check_rounding_between_neighbours<F16>(0x7bff);
}
TEST(Bf16, RoundsToNearestEven) {
  check_rounding_between_neighbours<Bf16>(0x7f7f);
}

}  // namespace
}  // namespace rankine
