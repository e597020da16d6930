#include <gtest/gtest.h>

#include "base/error.h"
#include "schedule/passes.h"

namespace rankine {
namespace {

std::string fault(const char* program, int micros, const std::vector<BlockTraits>& blocks = {}) {
  try {
    blocks.empty() ? check(parse_program(program), micros)
                   : check(parse_program(program), micros, blocks);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::internal);
    return e.what();
  }
}

struct Case {
  const char* program;
  const char* fault;  // a part of the message; "" when the program is good
};

void compare(const std::vector<Case>& cases, int micros,
             const std::vector<BlockTraits>& blocks = {}) {
  for (const auto& [program, expected] : cases) {
    const std::string found = fault(program, micros, blocks);
    if (*expected == 0)
      EXPECT_EQ(found, "") << program;
    else
      EXPECT_NE(found.find(expected), std::string::npos) << program << "\n" << found;
  }
}

TEST(Check, BlocksComeInOrder) {
  compare({{"0F0.0 0F0.1 0B0.1 0B0.0 0U", ""},
           {"0F0.1 0F0.0 0B0.1 0B0.0 0U", "action 0 (0F0.1) has no forward of the block before"},
           {"0F0.0 0F0.0 0B0.1 0B0.0 0U", "action 1 (0F0.0) repeats a forward"},
           {"0F0.0 0F0.1 0B0.0 0B0.1 0U", "action 2 (0B0.0)"},
           {"0F0.0 0B0.1 0F0.1 0B0.0 0U", "action 1 (0B0.1)"},
           {"0F0.0 0F0.1 0B0.1 0U", "micro-batch 0 is never finished"},
           {"0F0 0B0.0 0U", "action 0 (0F0) names no block"},
           {"0F0.1 0B0.1 0U", "the blocks of stage 0 begin with 1 where 0 is the next"},
           {"0F0.0 0B0.0", "the update is missing"}},
          1);
}

TEST(Check, CopiesHaveTheirPlace) {
  compare({{"0F0.0 0STORE0.0 0FETCH0.0 0B0.0 0U", ""},
           {"0F0.0 0STORE0.0 0FETCH0.0 0I0.0 0W0.0 0U", ""},
           {"0F0.0 0STORE0.0 0FETCH0.0 0R0.0 0B0.0 0U", ""},
           {"0STORE0.0 0F0.0 0FETCH0.0 0B0.0 0U", "action 0 (0STORE0.0) comes before the forward"},
           {"0F0.0 0STORE0.0 0B0.0 0FETCH0.0 0U", "action 2 (0B0.0) reads what is not fetched"},
           {"0F0.0 0STORE0.0 0R0.0 0FETCH0.0 0B0.0 0U", "action 2 (0R0.0) reads what is not"},
           {"0F0.0 0STORE0.0 0B0.0 0U", "reads what is not fetched"},
           {"0F0.0 0FETCH0.0 0B0.0 0U", "action 1 (0FETCH0.0) fetches what is not stored"},
           {"0F0.0 0STORE0.0 0STORE0.0 0FETCH0.0 0B0.0 0U", "repeats a copy"},
           {"0F0.0 0STORE0.0 0FETCH0.0 0FETCH0.0 0B0.0 0U", "repeats a copy"},
           {"0F0.0 0B0.0 0STORE0.0 0U", "comes after the backward of its block"},
           {"0F0.0 0STORE0.1 0B0.0 0U", "names a block out of range"},
           {"0LOAD.0 0F0.0 0B0.0 0RELEASE.0 0U", ""},
           {"0LOAD.0 0GATHER.0 0F0.0 0B0.0 0RELEASE.0 0U", ""},
           {"0LOAD.0 0LOAD.0 0F0.0 0B0.0 0RELEASE.0 0U", "loads what is here already"},
           {"0LOAD.0 0GATHER.0 0GATHER.0 0F0.0 0B0.0 0RELEASE.0 0U", "gathers what is gathered"},
           {"0LOAD.0 0F0.0 0B0.0 0U", "action 0 (0LOAD.0) is never released"}},
          1);
  const std::vector<BlockTraits> one = {{.parameter_elements = 5, .splits_backward = false}};
  compare(
      {{"0LOAD.0 0F0.0 0B0.0 0RELEASE.0 0U", ""},
       {"0F0.0 0LOAD.0 0B0.0 0RELEASE.0 0U", "reads parameters of block 0 that are not gathered"},
       {"0LOAD.0 0F0.0 0GATHER.0 0B0.0 0RELEASE.0 0U",
        "action 1 (0F0.0) reads parameters of block 0 that are not gathered"}},
      1, one);
}

TEST(Check, CollectivesHaveTheirPlace) {
  compare({{"0F0.0 0B0.0 0U 0REFRESH.0", ""},
           {"0F0.0 0B0.0 0REFRESH.0 0U", "action 2 (0REFRESH.0) comes before the update"},
           {"0F0.0 0B0.0 0U 0REFRESH.0 0REFRESH.0", "repeats a refresh"},
           {"0F0.0 0B0.0 0U 0REDUCE0.0", "comes after the update"},
           {"0F0.0 0B0.0 0U 0U", "comes after the update"},
           {"0F0.0 0REDUCE0.0 0B0.0 0U", "action 1 (0REDUCE0.0) comes before the backward"},
           {"0F0.0 0B0.0 0REDUCE0.0 0REDUCE0.0 0U", "repeats a reduction"},
           {"0F0.0 0B0.0 0REDUCE0.1 0U", "names a block out of range"},
           {"0GATHER.0 0F0.0 0B0.0 0RELEASE.0 0U", ""},
           {"0GATHER.0 0GATHER.0 0F0.0 0B0.0 0RELEASE.0 0U", "gathers what is gathered already"},
           {"0F0.0 0B0.0 0RELEASE.0 0U", "releases what is not gathered"},
           {"0GATHER.0 0F0.0 0B0.0 0U", "action 0 (0GATHER.0) is never released"}},
          1);
}

TEST(Check, TransfersSurroundComputations) {
  compare({{"1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0 1U", ""},
           {"1RECV_F0 1RECV_B0 1F0 1SEND_F0 1B0 1SEND_B0 1U", ""},
           {"1F0 1RECV_F0 1B0 1SEND_B0 1U", "action 1 (1RECV_F0) comes after the forward"},
           {"1RECV_F0 1F0 1SEND_B0 1B0 1U", "action 2 (1SEND_B0) comes before the backward"},
           {"0SEND_F0 0F0 0RECV_B0 0B0 0U", "comes before the forward that makes it"},
           {"0F0 0SEND_F0 0B0 0RECV_B0 0U", "comes after the backward that consumes it"},
           {"0F0 0SEND_F0 0SEND_F0 0RECV_B0 0B0 0U", "repeats a transfer"},
           {"0F0 0SEND_F0 0B0 0U", "stage 0 has 1 like 0SEND_F0 and 0 like 0RECV_B0"},
           {"0RECV_F0 0F0 0B0 0SEND_B0 0U", "receives where no stage is before it"},
           {"0F0 1SEND_F0 0B0 0U", "names a stage without computations"}},
          1);
  compare({{"0F0 0SEND_F0 0F1 0RECV_B0 0B0 0B1 0U", "stage 0 has 1 like"}}, 2);
}

TEST(Check, SplitBackwardsAreComplete) {
  compare({{"0F0 0I0 0W0 0U", ""},
           {"0F0 0I0 0U", "micro-batch 0 is never finished on stage 0"},
           {"0F0 0B0 0W0 0U", "action 2 (0W0) has no backward of its input before it"},
           {"0F0 0W0 0I0 0U", "action 1 (0W0) has no backward of its input before it"},
           {"0F0 0I0 0B0 0W0 0U", "action 2 (0B0) has no forward before it, or repeats"},
           {"0F0 0I0 0I0 0W0 0U", "action 2 (0I0)"},
           {"0F0 0I0 0W0 0W0 0U", "action 3 (0W0)"},
           {"0F0 0I0 0REDUCE0.0 0W0 0U", "action 2 (0REDUCE0.0) comes before the backward"},
           {"0F0.0 0F0.1 0I0.1 0I0.0 0W0.1 0W0.0 0U", ""},
           {"0F0.0 0F0.1 0I0.1 0W0.1 0I0.0 0W0.0 0U", ""},
           {"0F0.0 0F0.1 0B0.1 0I0.0 0W0.0 0REDUCE0.0 0U", ""},
           {"0F0.0 0F0.1 0I0.1 0I0.0 0W0.0 0W0.1 0U", "action 4 (0W0.0)"},
           {"0F0.0 0F0.1 0I0.1 0I0.0 0REDUCE0.1 0W0.1 0W0.0 0U", "action 4 (0REDUCE0.1)"},
           {"1RECV_F0 1F0 1I0 1SEND_F0 1RECV_B0 1SEND_B0 1W0 1U", "comes after the backward"}},
          1);
}

TEST(Check, SeveralStagesOfARankAreEachComplete) {
  compare(
      {{"0F0 2F0 2B0 0B0 0U", ""},
       {"0F0 2F0 2B0 0U", "never finished on stage 0"},
       {"0F0.0 2F0.1 2F0.2 2B0.2 2B0.1 0B0.0 2REDUCE0.2 0REDUCE0.0 0U 0REFRESH.0 2REFRESH.1", ""},
       {"0F0.0 2F0.1 2B0.1 0B0.0 0U 2REFRESH.0", "names a block out of range"},
       {"0F0.0 2F0.0 2B0.0 0B0.0 0U", "the blocks of stage 2 begin with 0 where 1 is the next"},
       {"0F0.1 2F0.0 2B0.0 0B0.1 0U", "the blocks of stage 0 begin with 1 where 0 is the next"},
       {"0F0.0 0F0.1 2F0.3 2B0.3 0B0.1 0B0.0 0U", "the blocks of stage 2 begin with 3"},
       {"0F0.0 2F0.1 2B0.1 2REDUCE0.1 2REDUCE0.0 0B0.0 0U", "names a block out of range"}},
      1);
}

// A tied head (block 1) over an embedding (block 0) whose backward reads nothing.
const std::vector<BlockTraits> tied = {
    {.parameter_elements = 8, .backward_reads_parameters = false},
    {.parameter_elements = 2,
     .tied = 0,
     .forward_reads_parameters = false,
     .splits_backward = false}};

TEST(Check, WhatIsReadIsGathered) {
  compare({{"0F0.0 0F0.1 0B0.1 0B0.0 0U", ""},
           {"0GATHER.0 0F0.0 0GATHER.1 0F0.1 0B0.1 0RELEASE.1 0RELEASE.0 0B0.0 0U", ""},
           {"0GATHER.0 0F0.0 0RELEASE.0 0GATHER.1 0F0.1 0B0.1 0RELEASE.1 0B0.0 0U",
            "action 5 (0B0.1) reads parameters of block 0 that are not gathered"},
           {"0GATHER.0 0F0.0 0F0.1 0B0.1 0RELEASE.0 0B0.0 0U",
            "action 3 (0B0.1) reads parameters of block 1"},
           {"0F0.0 0F0.1 0I0.1 0W0.1 0B0.0 0U",
            "action 2 (0I0.1) is of a block that does not split its backward"},
           {"0GATHER.0 0F0 0B0 0RELEASE.0 0U", "whole stages"},
           {"0F0.0 0B0.0 0U", "it names 1 blocks, the rank has 2"}},
          1, tied);
}

TEST(Check, EachBlockIsReducedOnceForWhatItSums) {
  const std::vector<BlockTraits> one = {{.parameter_elements = 8}};
  compare({{"0F0.0 0B0.0 0F1.0 0B1.0 0REDUCE1.0 0U", ""},
           {"0F0.0 0B0.0 0REDUCE0.0 0F1.0 0B1.0 0REDUCE1.0 0U", ""},
           {"0F0.0 0B0.0 0REDUCE0.0 0F1.0 0B1.0 0U", "action 2 (0REDUCE0.0) is not the reduction"},
           {"0F0.0 0B0.0 0F1.0 0B1.0 0REDUCE0.0 0U", "is not the reduction"}},
          2, one);
  compare(
      {{"0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0REDUCE0.0 0U 0REFRESH.0 0REFRESH.1", ""},
       {"0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0U", "block 0 is reduced 0 times where 1 is needed"},
       {"0F0.0 0F0.1 0B0.1 0B0.0 0U 0REFRESH.0", "block 1 is never refreshed"}},
      1, tied);
  compare({{"0F0.0 0B0.0 0REDUCE0.0 0U", "names a block without parameters"},
           {"0F0.0 0B0.0 0U 0REFRESH.0", "names a block without parameters"},
           {"0GATHER.0 0F0.0 0B0.0 0RELEASE.0 0U", "names a block without parameters"}},
          1, {BlockTraits{}});
}

}  // namespace
}  // namespace rankine
