#include "schedule/passes.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

// Embedding, layer, head over the embedding's matrix; embedding, layer, head with its own.
const BlockTraits embedding = {.parameter_elements = 100, .backward_reads_parameters = false};
const BlockTraits layer = {.parameter_elements = 50};
const std::vector<BlockTraits> tied = {embedding,
                                       layer,
                                       {.parameter_elements = 10,
                                        .tied = 0,
                                        .forward_reads_parameters = false,
                                        .splits_backward = false}};
const std::vector<BlockTraits> untied = {
    embedding,
    layer,
    {.parameter_elements = 110, .forward_reads_parameters = false, .splits_backward = false}};

Program expanded(int micros) {
  return expand_blocks(accumulation_program(micros), {{0, 0, 3}}, untied);
}

TEST(Passes, BlocksAscendForwardAndDescendBackward) {
  EXPECT_EQ(to_string(expanded(2)),
            "0F0.0 0F0.1 0F0.2 0B0.2 0B0.1 0B0.0 0F1.0 0F1.1 0F1.2 0B1.2 0B1.1 0B1.0 0U");
  EXPECT_EQ(to_string(expand_blocks(parse_program("1RECV_F0 1F0 1B0 1SEND_B0 1U"), {{1, 0, 2}},
                                    {layer, layer})),
            "1RECV_F0 1F0.0 1F0.1 1B0.1 1B0.0 1SEND_B0 1U");
}

TEST(Passes, BlocksThatDoNotSplitKeepTheirB) {
  EXPECT_EQ(to_string(expand_blocks(parse_program("0F0 0I0 0W0 0U"), {{0, 0, 3}}, tied)),
            "0F0.0 0F0.1 0F0.2 0B0.2 0I0.1 0I0.0 0W0.1 0W0.0 0U");
}

TEST(Passes, StagesOfARankFollowOneAnother) {
  const Program program =
      expand_blocks(parse_program("0F0 3F0 3I0 3W0 0I0 0W0 0U"), {{0, 0, 1}, {3, 1, 2}}, untied);
  EXPECT_EQ(to_string(program), "0F0.0 3F0.1 3F0.2 3B0.2 3I0.1 3W0.1 0I0.0 0W0.0 0U");
  EXPECT_EQ(stage_blocks(program), (std::vector<StageBlocks>{{0, 0, 1}, {3, 1, 2}}));
  EXPECT_EQ(to_string(add_reduces(program, untied, {})),
            "0F0.0 3F0.1 3F0.2 3B0.2 3REDUCE0.2 3I0.1 3W0.1 3REDUCE0.1 0I0.0 0W0.0 0REDUCE0.0 0U");
  EXPECT_EQ(to_string(add_refreshes(program, untied)),
            to_string(program) + " 0REFRESH.0 3REFRESH.1 3REFRESH.2");
  EXPECT_EQ(to_string(add_gathers(program, untied)),
            "0GATHER.0 3GATHER.1 0F0.0 0RELEASE.0 3F0.1 3RELEASE.1 3GATHER.2 3F0.2 3GATHER.1 "
            "3B0.2 3RELEASE.2 3I0.1 3W0.1 3RELEASE.1 0I0.0 0W0.0 0U");
  EXPECT_NO_THROW(check(add_reduces(program, untied, {}), 1, untied));
}

TEST(Passes, UsesOfATiedBlock) {
  const Action forward{0, ActionKind::forward, 0, 2}, backward{0, ActionKind::backward, 0, 2};
  EXPECT_TRUE(parameters_read(forward, tied).empty());
  EXPECT_EQ(parameters_read(backward, tied), (std::vector{2, 0}));
  EXPECT_TRUE(gradients_written(forward, tied).empty());
  EXPECT_EQ(gradients_written(backward, tied), (std::vector{2, 0}));
  EXPECT_EQ(gradients_written(backward, untied), std::vector{2});
  EXPECT_TRUE(parameters_read({0, ActionKind::backward, 0, 0}, tied).empty());
  EXPECT_EQ(gradients_written({0, ActionKind::backward, 0, 0}, tied), std::vector{0});
  std::vector<BlockTraits> inference = tied;
  inference[2].forward_reads_parameters = true;
  EXPECT_EQ(parameters_read(forward, inference), (std::vector{2, 0}));
}

TEST(Passes, SplitBackwardsBothReadAndWOneWrites) {
  const Action input{0, ActionKind::backward_input, 0, 1},
      weight{0, ActionKind::backward_weight, 0, 1};
  EXPECT_EQ(parameters_read(input, tied), std::vector{1});
  EXPECT_EQ(parameters_read(weight, tied), std::vector{1});
  EXPECT_TRUE(gradients_written(input, tied).empty());
  EXPECT_EQ(gradients_written(weight, tied), std::vector{1});
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

TEST(Passes, BucketsEndBeforeTheirBlocksAreWrittenAgain) {
  const Program program = expand_blocks(parse_program("0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1 0U"),
                                        {{0, 0, 1}, {2, 1, 1}}, {layer, layer});
  EXPECT_EQ(to_string(add_reduces(program, {layer, layer},
                                  {.every_micro = true, .bucket_elements = 1000})),
            "0F0.0 0F1.0 2F0.1 2F1.1 2B0.1 2REDUCE0.1 2B1.1 0B0.0 0REDUCE0.0 0B1.0 2REDUCE1.1 "
            "0REDUCE1.0 0U");
}

TEST(Passes, BlocksWithoutParametersHaveNoCollectives) {
  const std::vector<BlockTraits> bare = {{}, {.parameter_elements = 5}};
  const Program program = expand_blocks(accumulation_program(1), {{0, 0, 2}}, bare);
  EXPECT_EQ(to_string(add_reduces(program, bare, {.bucket_elements = 100})),
            "0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0U");
  EXPECT_EQ(to_string(add_gathers(program, bare)),
            "0GATHER.1 0F0.0 0F0.1 0B0.1 0RELEASE.1 0B0.0 0U");
  EXPECT_EQ(to_string(add_refreshes(program, bare)), "0F0.0 0F0.1 0B0.1 0B0.0 0U 0REFRESH.1");
}

TEST(Passes, LastMicroBatchIsThatOfTheProgram) {
  const Program program = expand_blocks(parse_program("0F0 0F1 0B1 0B0 0U"), {{0, 0, 1}}, {layer});
  EXPECT_EQ(to_string(add_reduces(program, {{.parameter_elements = 1}}, {})),
            "0F0.0 0F1.0 0B1.0 0B0.0 0REDUCE0.0 0U");
}

TEST(Passes, GathersComeOneComputationEarly) {
  EXPECT_EQ(to_string(add_gathers(expanded(2), untied)),
            "0GATHER.0 0GATHER.1 0F0.0 0RELEASE.0 0F0.1 0RELEASE.1 0GATHER.2 0F0.2 "
            "0GATHER.1 0B0.2 0RELEASE.2 0B0.1 0RELEASE.1 0GATHER.0 0B0.0 "
            "0GATHER.1 0F1.0 0RELEASE.0 0F1.1 0RELEASE.1 0GATHER.2 0F1.2 "
            "0GATHER.1 0B1.2 0RELEASE.2 0B1.1 0RELEASE.1 0B1.0 0U");
}

TEST(Passes, GathersOfATiedMatrixReachTheHead) {
  EXPECT_EQ(to_string(add_gathers(expanded(1), tied)),
            "0GATHER.0 0GATHER.1 0F0.0 0RELEASE.0 0F0.1 0RELEASE.1 0GATHER.2 0GATHER.0 0F0.2 "
            "0GATHER.1 0B0.2 0RELEASE.2 0RELEASE.0 0B0.1 0RELEASE.1 0B0.0 0U");
}

TEST(Passes, WhatIsReadSoonAgainStaysGathered) {
  EXPECT_EQ(to_string(add_gathers(expanded(1), tied, {.keep = 3})),
            "0GATHER.0 0GATHER.1 0F0.0 0F0.1 0GATHER.2 0F0.2 0B0.2 0RELEASE.2 0RELEASE.0 "
            "0B0.1 0RELEASE.1 0B0.0 0U");
  const Program split = expand_blocks(parse_program("0F0 0I0 0W0 0U"), {{0, 0, 2}}, {layer, layer});
  EXPECT_EQ(to_string(add_gathers(split, {layer, layer}, {.keep = 1})),
            "0GATHER.0 0GATHER.1 0F0.0 0RELEASE.0 0F0.1 0GATHER.0 0I0.1 0RELEASE.1 0GATHER.1 "
            "0I0.0 0RELEASE.0 0GATHER.0 0W0.1 0RELEASE.1 0W0.0 0RELEASE.0 0U");
}

// Block 0 is not read by its backward, block 2 not by its forward.
TEST(Passes, LoadsComeEarlierThanGathers) {
  EXPECT_EQ(to_string(add_gathers(expanded(1), untied, {.gathers = false, .load_ahead = 1})),
            "0LOAD.0 0LOAD.1 0F0.0 0RELEASE.0 0F0.1 0RELEASE.1 0LOAD.2 0F0.2 0LOAD.1 0B0.2 "
            "0RELEASE.2 0B0.1 0RELEASE.1 0B0.0 0U");
  EXPECT_EQ(to_string(add_gathers(expanded(1), untied, {.keep = 1, .load_ahead = 1})),
            "0LOAD.0 0GATHER.0 0LOAD.1 0GATHER.1 0F0.0 0RELEASE.0 0LOAD.2 0F0.1 0RELEASE.1 "
            "0GATHER.2 0LOAD.1 0F0.2 0GATHER.1 0B0.2 0RELEASE.2 0B0.1 0RELEASE.1 0B0.0 0U");
}

// Not in front of the RELEASE that a block's earlier use ends with.
TEST(Passes, LoadsWaitForTheMemoryOfTheirOwnBlock) {
  EXPECT_EQ(to_string(add_gathers(expanded(1), untied, {.gathers = false, .load_ahead = 9})),
            "0LOAD.0 0LOAD.1 0LOAD.2 0F0.0 0RELEASE.0 0F0.1 0RELEASE.1 0LOAD.1 0F0.2 0B0.2 "
            "0RELEASE.2 0B0.1 0RELEASE.1 0B0.0 0U");
}

TEST(Passes, WhatIsSavedLeavesWhereItsMemoryIsFreeForAWhile) {
  const std::vector<BlockTraits> four(4, layer);
  const Program program = expand_blocks(accumulation_program(1), {{0, 0, 4}}, four);
  EXPECT_EQ(to_string(add_stores(program, four, 1)),
            "0F0.0 0STORE0.0 0F0.1 0STORE0.1 0F0.2 0F0.3 0B0.3 0FETCH0.1 0B0.2 0FETCH0.0 0B0.1 "
            "0B0.0 0U");
  EXPECT_EQ(to_string(add_stores(program, four, 3)),
            "0F0.0 0STORE0.0 0F0.1 0F0.2 0F0.3 0FETCH0.0 0B0.3 0B0.2 0B0.1 0B0.0 0U");
  std::vector<BlockTraits> bare = four;
  bare[0].keeps = false;
  bare[1].recomputes = true;
  EXPECT_EQ(to_string(add_stores(add_recomputes(program, bare), bare, 1)),
            "0F0.0 0F0.1 0STORE0.1 0F0.2 0F0.3 0B0.3 0FETCH0.1 0B0.2 0R0.1 0B0.1 0B0.0 0U");
}

TEST(Passes, GathersKeepClearOfReduces) {
  const Program reduced = add_reduces(expanded(1), untied, {.every_micro = true});
  EXPECT_EQ(
      to_string(add_gathers(reduced, untied)),
      "0GATHER.0 0GATHER.1 0F0.0 0RELEASE.0 0F0.1 0RELEASE.1 0GATHER.2 0F0.2 "
      "0GATHER.1 0B0.2 0RELEASE.2 0REDUCE0.2 0B0.1 0RELEASE.1 0REDUCE0.1 0B0.0 0REDUCE0.0 0U");
}

TEST(Passes, RefreshesFollowTheUpdate) {
  EXPECT_EQ(to_string(add_refreshes(expanded(1), tied)),
            "0F0.0 0F0.1 0F0.2 0B0.2 0B0.1 0B0.0 0U 0REFRESH.0 0REFRESH.1 0REFRESH.2");
}

}  // namespace
}  // namespace rankine
