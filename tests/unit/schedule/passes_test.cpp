#include "schedule/passes.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

// Embedding, layer, head over the embedding's matrix; embedding, layer, head with its own.
const std::vector<BlockTraits> tied = {
    {.parameter_elements = 100, .backward_reads_parameters = false},
    {.parameter_elements = 50},
    {.parameter_elements = 10, .tied = 0}};
const std::vector<BlockTraits> untied = {
    {.parameter_elements = 100, .backward_reads_parameters = false},
    {.parameter_elements = 50},
    {.parameter_elements = 110, .forward_adds_gradients = true}};

Program expanded(int micros) {
  return expand_blocks(accumulation_program(micros), 3);
}

TEST(Passes, BlocksAscendForwardAndDescendBackward) {
  EXPECT_EQ(to_string(expanded(2)),
            "0F0.0 0F0.1 0F0.2 0B0.2 0B0.1 0B0.0 0F1.0 0F1.1 0F1.2 0B1.2 0B1.1 0B1.0 0U");
  EXPECT_EQ(to_string(expand_blocks(parse_program("1RECV_F0 1F0 1B0 1SEND_B0 1U"), 2)),
            "1RECV_F0 1F0.0 1F0.1 1B0.1 1B0.0 1SEND_B0 1U");
}

TEST(Passes, UsesOfATiedBlock) {
  const Action forward{0, ActionKind::forward, 0, 2}, backward{0, ActionKind::backward, 0, 2};
  EXPECT_EQ(parameters_read(forward, tied), (std::vector{2, 0}));
  EXPECT_EQ(parameters_read(backward, tied), std::vector{2});
  EXPECT_EQ(gradients_written(forward, tied), std::vector{0});
  EXPECT_EQ(gradients_written(backward, tied), std::vector{2});
  EXPECT_EQ(gradients_written(forward, untied), std::vector{2});
  EXPECT_TRUE(parameters_read({0, ActionKind::backward, 0, 0}, tied).empty());
  EXPECT_EQ(gradients_written({0, ActionKind::backward, 0, 0}, tied), std::vector{0});
}

TEST(Passes, ReduceBehindTheLastMicroBatch) {
  EXPECT_EQ(to_string(add_reduces(expanded(2), tied, {})),
            "0F0.0 0F0.1 0F0.2 0B0.2 0B0.1 0B0.0 0F1.0 0F1.1 0F1.2 "
            "0B1.2 0REDUCE1.2 0B1.1 0REDUCE1.1 0B1.0 0REDUCE1.0 0U");
}

TEST(Passes, ReduceEveryMicroBatch) {
  EXPECT_EQ(to_string(add_reduces(expanded(2), tied, {.every_micro = true})),
            "0F0.0 0F0.1 0F0.2 0B0.2 0REDUCE0.2 0B0.1 0REDUCE0.1 0B0.0 0REDUCE0.0 "
            "0F1.0 0F1.1 0F1.2 0B1.2 0REDUCE1.2 0B1.1 0REDUCE1.1 0B1.0 0REDUCE1.0 0U");
}

TEST(Passes, BucketsFillInOrderOfCompletion) {
  EXPECT_EQ(to_string(add_reduces(expanded(1), tied, {.bucket_elements = 60})),
            "0F0.0 0F0.1 0F0.2 0B0.2 0B0.1 0REDUCE0.2 0REDUCE0.1 0B0.0 0REDUCE0.0 0U");
  EXPECT_EQ(to_string(add_reduces(expanded(1), tied, {.bucket_elements = 61})),
            "0F0.0 0F0.1 0F0.2 0B0.2 0B0.1 0B0.0 0REDUCE0.2 0REDUCE0.1 0REDUCE0.0 0U");
  EXPECT_EQ(
      to_string(add_reduces(expanded(2), tied, {.every_micro = true, .bucket_elements = 1000})),
      "0F0.0 0F0.1 0F0.2 0B0.2 0B0.1 0B0.0 0REDUCE0.2 0REDUCE0.1 0REDUCE0.0 "
      "0F1.0 0F1.1 0F1.2 0B1.2 0B1.1 0B1.0 0REDUCE1.2 0REDUCE1.1 0REDUCE1.0 0U");
}

TEST(Passes, BlocksWithoutParametersHaveNoCollectives) {
  const std::vector<BlockTraits> bare = {{}, {.parameter_elements = 5}};
  const Program program = expand_blocks(accumulation_program(1), 2);
  EXPECT_EQ(to_string(add_reduces(program, bare, {.bucket_elements = 100})),
            "0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0U");
  EXPECT_EQ(to_string(add_gathers(program, bare)),
            "0GATHER.1 0F0.0 0F0.1 0B0.1 0RELEASE.1 0B0.0 0U");
  EXPECT_EQ(to_string(add_refreshes(program, bare)), "0F0.0 0F0.1 0B0.1 0B0.0 0U 0REFRESH.1");
}

TEST(Passes, LastMicroBatchIsThatOfTheProgram) {
  const Program program = expand_blocks(parse_program("0F0 0F1 0B1 0B0 0U"), 1);
  EXPECT_EQ(to_string(add_reduces(program, {{.parameter_elements = 1}}, {})),
            "0F0.0 0F1.0 0B1.0 0B0.0 0REDUCE0.0 0U");
}

TEST(Passes, GathersComeOneComputationEarly) {
  EXPECT_EQ(to_string(add_gathers(expanded(2), untied)),
            "0GATHER.0 0GATHER.1 0F0.0 0RELEASE.0 0GATHER.2 0F0.1 0RELEASE.1 0F0.2 "
            "0GATHER.1 0B0.2 0RELEASE.2 0B0.1 0RELEASE.1 0GATHER.0 0B0.0 "
            "0GATHER.1 0F1.0 0RELEASE.0 0GATHER.2 0F1.1 0RELEASE.1 0F1.2 "
            "0GATHER.1 0B1.2 0RELEASE.2 0B1.1 0RELEASE.1 0B1.0 0U");
}

TEST(Passes, GathersOfATiedMatrixReachTheHead) {
  EXPECT_EQ(to_string(add_gathers(expanded(2), tied)),
            "0GATHER.0 0GATHER.1 0F0.0 0GATHER.2 0F0.1 0RELEASE.1 0F0.2 0RELEASE.0 "
            "0GATHER.1 0B0.2 0RELEASE.2 0B0.1 0RELEASE.1 0GATHER.0 0B0.0 "
            "0GATHER.1 0F1.0 0GATHER.2 0F1.1 0RELEASE.1 0F1.2 0RELEASE.0 "
            "0GATHER.1 0B1.2 0RELEASE.2 0B1.1 0RELEASE.1 0B1.0 0U");
}

TEST(Passes, GathersKeepClearOfReduces) {
  const Program reduced = add_reduces(expanded(1), untied, {.every_micro = true});
  EXPECT_EQ(
      to_string(add_gathers(reduced, untied)),
      "0GATHER.0 0GATHER.1 0F0.0 0RELEASE.0 0GATHER.2 0F0.1 0RELEASE.1 0F0.2 "
      "0GATHER.1 0B0.2 0RELEASE.2 0REDUCE0.2 0B0.1 0RELEASE.1 0REDUCE0.1 0B0.0 0REDUCE0.0 0U");
}

TEST(Passes, RefreshesFollowTheUpdate) {
  EXPECT_EQ(to_string(add_refreshes(expanded(1), tied)),
            "0F0.0 0F0.1 0F0.2 0B0.2 0B0.1 0B0.0 0U 0REFRESH.0 0REFRESH.1 0REFRESH.2");
}

}  // namespace
}  // namespace rankine
