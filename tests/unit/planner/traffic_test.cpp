#include "planner/traffic.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

Traffic traffic(int64_t stage, int64_t accumulation, int64_t ranks = 4) {
  return data_parallel_traffic(1000, ranks, zero_stage(stage), accumulation);
}

// One pass over 1000 parameters on 4 ranks sends 750 elements.
TEST(Traffic, StagesZeroAndOneSendTheGradientsOnceAStep) {
  for (const int64_t accumulation : {1, 8})
    for (const int64_t stage : {0, 1})
      EXPECT_EQ(traffic(stage, accumulation).total(), 2 * 750) << stage << ' ' << accumulation;
  EXPECT_EQ(traffic(0, 1).parameters, 0);
  EXPECT_EQ(traffic(1, 1).parameters, 750);
}

TEST(Traffic, StageTwoReducesEveryMicroBatchAndGathersOnce) {
  EXPECT_EQ(traffic(2, 1).total(), 2 * 750);
  EXPECT_EQ(traffic(2, 8).gradients, 8 * 750);
  EXPECT_EQ(traffic(2, 8).parameters, 750);
}

TEST(Traffic, StageThreeGathersTwiceAMicroBatch) {
  EXPECT_EQ(traffic(3, 1).total(), 3 * 750);
  EXPECT_EQ(traffic(3, 8).gradients, 8 * 750);
  EXPECT_EQ(traffic(3, 8).parameters, 2 * 8 * 750);
}

TEST(Traffic, OneRankSendsNothing) {
  for (const int64_t stage : {0, 1, 2, 3}) EXPECT_EQ(traffic(stage, 3, 1).total(), 0) << stage;
}

TEST(Traffic, NumbersBelowOneAreRefused) {
  EXPECT_THROW(traffic(0, 0), Error);
  EXPECT_THROW(traffic(0, 1, 0), Error);
  EXPECT_THROW(data_parallel_traffic(0, 1, {}, 1), Error);
}

}  // namespace
}  // namespace rankine
