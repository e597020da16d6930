#include "state/optimizer.h"

#include <gtest/gtest.h>

#include "ops/loss_scale.h"

namespace rankine {
namespace {

OptimizerOptions options(LrDecay decay) {
  OptimizerOptions o;
  o.lr = 1;
  o.min_lr = 0.1;
  o.warmup_steps = 10;
  o.decay = decay;
  return o;
}

TEST(LearningRate, WarmsUpLinearlyFromTheFirstStep) {
  for (const LrDecay decay : {LrDecay::constant, LrDecay::linear, LrDecay::cosine, LrDecay::wsd}) {
    EXPECT_DOUBLE_EQ(learning_rate(options(decay), 1, 110), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(options(decay), 10, 110), 1);
  }
}

TEST(LearningRate, DecaysToTheMinimum) {
  EXPECT_DOUBLE_EQ(learning_rate(options(LrDecay::constant), 110, 110), 1);
  for (const LrDecay decay : {LrDecay::linear, LrDecay::cosine, LrDecay::wsd}) {
    EXPECT_DOUBLE_EQ(learning_rate(options(decay), 110, 110), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(options(decay), 999, 110), 0.1) << "beyond the end";
  }
  EXPECT_DOUBLE_EQ(learning_rate(options(LrDecay::linear), 60, 110), 0.55);
  EXPECT_DOUBLE_EQ(learning_rate(options(LrDecay::cosine), 60, 110), 0.55);
  EXPECT_NEAR(learning_rate(options(LrDecay::cosine), 35, 110), 0.1 + 0.9 * 0.8535533906, 1e-9);
}

TEST(LearningRate, WsdStaysThenDecaysOverItsLastPart) {
  EXPECT_DOUBLE_EQ(learning_rate(options(LrDecay::wsd), 88, 110), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options(LrDecay::wsd), 99, 110), 0.55);
}

TEST(LearningRate, RunsShorterThanTheWarmUpStayOnTheRamp) {
  EXPECT_DOUBLE_EQ(learning_rate(options(LrDecay::cosine), 5, 5), 0.5);
}

TEST(Clipping, FactorIsTheUsualOne) {
  EXPECT_DOUBLE_EQ(clip_factor(1, 0.5), 1);
  EXPECT_DOUBLE_EQ(clip_factor(1, 4), 1 / (4 + 1e-6));
  EXPECT_DOUBLE_EQ(clip_factor(0, 4), 1) << "0 does not clip";
}

TEST(LossScale, IsOneAndSkipsOnlyNonFiniteStepsWithoutF16) {
  LossScale scale(false);
  EXPECT_FALSE(scale.skip_after(true));
  EXPECT_TRUE(scale.skip_after(false));
  EXPECT_EQ(scale.scale(), 1);
}

TEST(LossScale, HalvesAfterTheHysteresisAndGrowsAfterTheWindow) {
  LossScale scale(true);
  EXPECT_EQ(scale.scale(), 65536);
  EXPECT_TRUE(scale.skip_after(false));
  EXPECT_EQ(scale.scale(), 65536) << "one overflow is tolerated";
  EXPECT_TRUE(scale.skip_after(false));
  EXPECT_EQ(scale.scale(), 32768);
  EXPECT_TRUE(scale.skip_after(false));
  EXPECT_EQ(scale.scale(), 16384);
  for (int i = 0; i < LossScale::window; ++i) EXPECT_FALSE(scale.skip_after(true));
  EXPECT_EQ(scale.scale(), 32768);
  EXPECT_TRUE(scale.skip_after(false));
  EXPECT_EQ(scale.scale(), 32768) << "growth renews the tolerance";
}

TEST(LossScale, NeverFallsBelowOneAndResumesItsState) {
  LossScale scale(true);
  for (int i = 0; i < 40; ++i) scale.skip_after(false);
  EXPECT_EQ(scale.scale(), 1);
  for (int i = 0; i < 7; ++i) scale.skip_after(true);
  LossScale other(true);
  other.restore(scale.state());
  for (int i = 0; i < LossScale::window - 8; ++i) {
    scale.skip_after(true);
    other.skip_after(true);
  }
  EXPECT_EQ(other.scale(), 1);
  other.skip_after(true);
  EXPECT_EQ(other.scale(), 2);
}

}  // namespace
}  // namespace rankine
