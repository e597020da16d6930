#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/lifetimes.h"

namespace rankine {
namespace {

// "kind block/micro first-last", in order of start, then of kind.
std::vector<std::string> drawn(std::vector<Stay> stays) {
  const char* const names[] = {"parameters",  "gradient",   "input",          "saved",
                               "output",      "pending",    "input_gradient", "output_gradient",
                               "passed_over", "recomputed", "input_again",    "saved_again",
                               "stored"};
  std::stable_sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) {
    return std::pair(a.first, a.kind) < std::pair(b.first, b.kind);
  });
  std::vector<std::string> out;
  for (const Stay& stay : stays)
    out.push_back(fmt::format("{} {}/{} {}-{}", names[static_cast<size_t>(stay.kind)], stay.block,
                              stay.micro, stay.first, stay.last));
  return out;
}

using Lines = std::vector<std::string>;
const ActivationBytes full = {.input = 1, .saved = 2, .output = 3, .pending = 4};

TEST(Activations, OfAStageInTheMiddle) {
  // Indices:  0        1     2     3       4        5     6     7        8     9     10
  const Program program =
      parse_program("1RECV_F0 1F0.0 1F0.1 1SEND_F0 1RECV_B0 1I0.1 1I0.0 1SEND_B0 1W0.1 1W0.0 1U");
  const ActivationStays stays = activation_stays(program, {{1, 0, 2}}, {full, full});
  EXPECT_EQ(drawn(stays.saved), (Lines{"input 0/0 0-9", "input 1/0 1-8", "saved 0/0 1-9",
                                       "saved 1/0 2-8", "output_gradient 1/0 4-8"}));
  EXPECT_EQ(drawn(stays.passing),
            (Lines{"output 1/0 2-10", "pending 1/0 5-8", "input_gradient 1/0 5-9",
                   "pending 0/0 6-9", "input_gradient 0/0 6-10"}));
  for (const Stay& stay : stays.passing) {
    const int64_t bytes = stay.kind == StayKind::pending          ? 4
                          : stay.kind == StayKind::input_gradient ? 1
                                                                  : 3;
    EXPECT_EQ(stay.bytes, bytes) << drawn({stay})[0];
  }
}

TEST(Activations, OfOneRankAlone) {
  const Program program = parse_program("0F0.0 0F0.1 0B0.1 0B0.0 0U");
  const ActivationStays stays = activation_stays(program, {{0, 0, 2}}, {full, full});
  EXPECT_EQ(drawn(stays.saved), (Lines{"input 1/0 0-2", "saved 0/0 0-3", "saved 1/0 1-2"}));
  EXPECT_EQ(drawn(stays.passing),
            (Lines{"pending 1/0 2-2", "input_gradient 1/0 2-3", "pending 0/0 3-3"}));
}

TEST(Activations, WhatIsStoredIsHereTwice) {
  // Indices:  0     1     2         3     4         5     6     7         8     9
  const Program program =
      parse_program("0F0.0 0F0.1 0STORE0.1 0F0.2 0REDUCE0.2 0B0.2 0FETCH0.1 0I0.1 0B0.0 0W0.1 0U");
  const ActivationStays stays = activation_stays(
      program, {{0, 0, 3}}, {{.saved = 2}, {.input = 1, .saved = 2}, {.input = 1, .saved = 2}});
  EXPECT_EQ(drawn(stays.saved),
            (Lines{"input 1/0 0-3", "saved 0/0 0-8", "input 2/0 1-5", "saved 1/0 1-3",
                   "saved 2/0 3-5", "input_again 1/0 6-9", "saved_again 1/0 6-9"}));
  EXPECT_EQ(drawn(stays.stored), Lines{"stored 1/0 2-7"});
  EXPECT_EQ(stays.stored[0].bytes, 3);
}

TEST(Activations, NothingOfNoBytes) {
  const Program program = parse_program("0F0.0 0F0.1 0B0.1 0B0.0 0U");
  const ActivationStays stays = activation_stays(program, {{0, 0, 2}}, {{}, {.saved = 1}});
  EXPECT_EQ(drawn(stays.saved), Lines{"saved 1/0 1-2"});
  EXPECT_TRUE(stays.passing.empty());
}

TEST(Activations, WhatIsSentIsBufferedTwice) {
  // Indices:  0     1        2     3        4     5        6        7     8        9     10  11
  const Program program = parse_program(
      "0F0.0 0SEND_F0 0F1.0 0SEND_F1 0F2.0 0SEND_F2 0RECV_B0 0B0.0 0RECV_B1 0B1.0 0RECV_B2 0B2.0 "
      "0U");
  const ActivationStays stays = activation_stays(program, {{0, 0, 1}}, {{.output = 1}});
  EXPECT_EQ(drawn(stays.passing), (Lines{"output 0/0 0-3", "output 0/1 2-12", "output 0/2 4-12"}));
  EXPECT_EQ(drawn(stays.saved), (Lines{"output_gradient 0/0 6-7", "output_gradient 0/1 8-9",
                                       "output_gradient 0/2 10-11"}));
}

TEST(Activations, AcrossTheTurnOfAV) {
  // Rank 1 of 2: stages 1 (block 0) and 2 (block 1).
  // Indices:  0        1     2        3     4        5     6     7        8     9
  const Program program =
      parse_program("1RECV_F0 1F0.0 2RECV_B0 2F0.1 2SEND_F0 2I0.1 1I0.0 1SEND_B0 1W0.0 2W0.1 1U");
  const ActivationStays stays = activation_stays(program, {{1, 0, 1}, {2, 1, 1}}, {full, full});
  EXPECT_EQ(drawn(stays.saved), (Lines{"input 0/0 0-8", "input 1/0 1-9", "saved 0/0 1-8",
                                       "output_gradient 1/0 2-9", "saved 1/0 3-9"}));
  EXPECT_EQ(drawn(stays.passing),
            (Lines{"output 1/0 3-10", "pending 1/0 5-9", "input_gradient 1/0 5-8",
                   "pending 0/0 6-8", "input_gradient 0/0 6-10"}));
}

TEST(Activations, StagesOfARankThatAreNotNeighboursPassNothing) {
  // Rank 0 of 2, interleaved: stages 0 and 2.
  const Program program = parse_program(
      "0F0.0 0SEND_F0 2RECV_F0 2F0.1 2SEND_F0 2RECV_B0 2B0.1 2SEND_B0 0RECV_B0 0B0.0 0U");
  const ActivationStays stays =
      activation_stays(program, {{0, 0, 1}, {2, 1, 1}}, {{.input = 1, .output = 1}, {.input = 1}});
  EXPECT_EQ(drawn(stays.saved), (Lines{"input 1/0 2-6", "output_gradient 0/0 8-9"}));
  EXPECT_EQ(drawn(stays.passing), (Lines{"output 0/0 0-10", "input_gradient 1/0 6-10"}));
}

}  // namespace
}  // namespace rankine
