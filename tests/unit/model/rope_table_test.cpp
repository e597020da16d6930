#include "model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "model/config.h"

namespace rankine {
namespace {

ModelConfig model_of(RopeKind kind, double factor) {
  ModelConfig c;
  c.head_dim = 64;
  c.rope = {.kind = kind, .theta = 10000, .factor = factor};
  return c;
}

// The angle that a table has at position 1, of frequency i.
double angle(const std::vector<float>& table, size_t i, size_t half) {
  return std::atan2(table[2 * half + half + i], table[2 * half + i]);
}

TEST(RopeTable, HasTheFrequenciesOfTheFormula) {
  const std::vector<float> table = rope_table(model_of(RopeKind::plain, 1), 3);
  ASSERT_EQ(table.size(), 3u * 64);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(table[i], 1);
    EXPECT_EQ(table[32 + i], 0);
    EXPECT_NEAR(angle(table, i, 32), std::pow(10000.0, -2.0 * static_cast<double>(i) / 64), 1e-6);
  }
}

TEST(RopeTable, LinearScalingDividesEveryAngle) {
  const std::vector<float> plain = rope_table(model_of(RopeKind::plain, 1), 9);
  const std::vector<float> scaled = rope_table(model_of(RopeKind::linear, 4), 9);
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(scaled[8 * 64 + i], plain[2 * 64 + i], 1e-6);
}

// Llama 3.1: short wavelengths stay, long ones are divided, those between pass over smoothly.
TEST(RopeTable, Llama3KeepsShortWavelengthsAndDividesLongOnes) {
  ModelConfig c = model_of(RopeKind::llama3, 8);
  c.rope.original_positions = 8192;
  c.rope.low_freq_factor = 1;
  c.rope.high_freq_factor = 4;
  c.rope.theta = 500000;
  const std::vector<float> table = rope_table(c, 2);
  int kept = 0, divided = 0;
  for (size_t i = 0; i < 32; ++i) {
    const double f = std::pow(500000.0, -2.0 * static_cast<double>(i) / 64);
    const double wavelength = 2 * std::numbers::pi / f;
    if (wavelength < 8192.0 / 4) {
      EXPECT_NEAR(angle(table, i, 32), f, 1e-6);
      ++kept;
    } else if (wavelength > 8192) {
      EXPECT_NEAR(angle(table, i, 32), f / 8, 1e-9);
      ++divided;
    } else {
      EXPECT_LT(angle(table, i, 32), f);
      EXPECT_GT(angle(table, i, 32), f / 8);
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(divided, 0);
}

// Peng et al. 2023, section 3.4: cos and sin grow by 0.1 ln(factor) + 1.
TEST(RopeTable, YarnScalesCosAndSin) {
  ModelConfig c = model_of(RopeKind::yarn, 4);
  c.rope.original_positions = 4096;
  const std::vector<float> table = rope_table(c, 2);
  const double scale = 0.1 * std::log(4.0) + 1;
  for (size_t i = 0; i < 32; ++i)
    EXPECT_NEAR(std::hypot(table[64 + i], table[64 + 32 + i]), scale, 1e-6);
  EXPECT_NEAR(angle(table, 0, 32), 1, 1e-6) << "the fastest frequency is kept";
  EXPECT_NEAR(angle(table, 31, 32), std::pow(10000.0, -62.0 / 64) / 4, 1e-9) << "the slowest";
}

}  // namespace
}  // namespace rankine
