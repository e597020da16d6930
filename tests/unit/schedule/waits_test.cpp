#include "schedule/waits.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rankine {
namespace {

// What the action at `index` waits for, printed.
std::string waits_of(const char* text, size_t index, const std::vector<BlockTraits>& blocks = {},
                     const PlacedStays& stays = {}) {
  const Program program = parse_program(text);
  std::vector<int> found = waits(program, blocks, stays)[index];
  std::sort(found.begin(), found.end());
  Program out;
  for (const int i : found) out.push_back(program[static_cast<size_t>(i)]);
  return to_string(out);
}

const std::vector<BlockTraits> tied = {
    {.parameter_elements = 8, .backward_reads_parameters = false},
    {.parameter_elements = 2, .tied = 0, .forward_reads_parameters = false}};

TEST(Waits, ComputationsWaitForWhatTheyRead) {
  const char* text = "0GATHER.0 0GATHER.1 0F0.0 0F0.1 0B0.1 0B0.0";
  EXPECT_EQ(waits_of(text, 2, tied), "0GATHER.0");
  EXPECT_EQ(waits_of(text, 3, tied), "");
  EXPECT_EQ(waits_of(text, 4, tied), "0GATHER.0 0GATHER.1");
  EXPECT_EQ(waits_of(text, 5, tied), "");
  EXPECT_EQ(waits_of(text, 3), "0GATHER.1");
  EXPECT_EQ(waits_of("0GATHER.0 0GATHER.1 0F0", 2), "0GATHER.0 0GATHER.1");
  EXPECT_EQ(waits_of("0REFRESH.0 0REFRESH.1 0F0.0", 2, tied), "0REFRESH.0");
}

TEST(Waits, ComputationsWaitForWhatTheyConsume) {
  const char* text = "1RECV_F0 1RECV_F1 1F0 1SEND_F0 1RECV_B0 1B0";
  EXPECT_EQ(waits_of(text, 2), "1RECV_F0");
  EXPECT_EQ(waits_of(text, 3), "");
  EXPECT_EQ(waits_of(text, 5), "1RECV_B0");
}

TEST(Waits, WritersWaitForReductionsOfTheirBuffer) {
  const char* text = "0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0REDUCE0.0 0F1.0 0F1.1 0B1.1 0B1.0 0U";
  EXPECT_EQ(waits_of(text, 6, tied), "");
  EXPECT_EQ(waits_of(text, 7, tied), "");
  EXPECT_EQ(waits_of(text, 8, tied), "0REDUCE0.1 0REDUCE0.0");
  EXPECT_EQ(waits_of(text, 9, tied), "0REDUCE0.0");
  EXPECT_EQ(waits_of(text, 7), "");
}

TEST(Waits, OnlyTheEndsOfAStageWaitForTransfers) {
  const char* text =
      "1RECV_F0 1F0.0 1F0.1 1SEND_F0 1RECV_B0 1I0.1 1I0.0 1SEND_B0 1W0.1 1W0.0 4RECV_F0 4F0.2";
  EXPECT_EQ(waits_of(text, 1), "1RECV_F0");
  EXPECT_EQ(waits_of(text, 2), "");
  EXPECT_EQ(waits_of(text, 5), "1RECV_B0");
  EXPECT_EQ(waits_of(text, 6), "");
  EXPECT_EQ(waits_of(text, 8), "");
  EXPECT_EQ(waits_of(text, 11), "4RECV_F0");
}

TEST(Waits, UpdateWaitsForReductionsAndSends) {
  EXPECT_EQ(waits_of("1RECV_F0 1F0 1B0 1REDUCE0.0 1REDUCE0.1 1SEND_B0 1U 1REFRESH.0", 6),
            "1REDUCE0.0 1REDUCE0.1 1SEND_B0");
  EXPECT_EQ(waits_of("1RECV_F0 1F0 1B0 1REDUCE0.0 1REDUCE0.1 1SEND_B0 1U 1REFRESH.0", 7), "");
}

TEST(Waits, TakingMemoryOverWaitsForItsReduction) {
  const char* text = "0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0REDUCE0.0 0U";
  const std::vector<BlockTraits> plain = {{.parameter_elements = 1}, {.parameter_elements = 1}};
  PlacedStays stays{gradient_stays(parse_program(text), plain, {64, 64}, 0)};
  EXPECT_EQ(place(stays.gradients), 64);
  EXPECT_EQ(waits_of(text, 4, plain, stays), "0REDUCE0.1");
  EXPECT_EQ(waits_of(text, 2, plain, stays), "");
  stays.gradients = gradient_stays(parse_program(text), plain, {64, 64}, 1);
  EXPECT_EQ(place(stays.gradients), 128);
  EXPECT_EQ(waits_of(text, 4, plain, stays), "");
}

TEST(Waits, CopiesComeOneAfterTheOther) {
  const char* text = "0LOAD.0 0GATHER.0 0F0.0 0STORE0.0 0FETCH0.0 0R0.0 0I0.0 0W0.0 0RELEASE.0 0U";
  EXPECT_EQ(waits_of(text, 1), "0LOAD.0");
  EXPECT_EQ(waits_of(text, 2), "0GATHER.0");
  EXPECT_EQ(waits_of(text, 3), "");
  EXPECT_EQ(waits_of(text, 4), "0STORE0.0");
  for (const int reader : {5, 6, 7}) EXPECT_EQ(waits_of(text, reader), "0GATHER.0 0FETCH0.0");
  EXPECT_EQ(waits_of("0LOAD.0 0F0.0 0B0.0 0RELEASE.0 0U", 1), "0LOAD.0");
}

TEST(Waits, TakingMemoryOverWaitsForItsStore) {
  const char* text = "0F0.0 0STORE0.0 0F0.1 0F0.2 0F0.3 0B0.3 0B0.2 0FETCH0.0 0B0.1 0B0.0 0U";
  PlacedStays stays;
  stays.saved = activation_stays(parse_program(text), {{0, 0, 4}},
                                 std::vector<ActivationBytes>(4, {.saved = 64}))
                    .saved;
  EXPECT_EQ(place(stays.saved), 3 * 64);
  EXPECT_EQ(waits_of(text, 2, {}, stays), "");
  EXPECT_EQ(waits_of(text, 3, {}, stays), "0STORE0.0");
}

TEST(Waits, TakingMemoryOverWaitsForItsSend) {
  const char* text =
      "0F0.0 0SEND_F0 0F1.0 0SEND_F1 0F2.0 0SEND_F2 0RECV_B0 0B0.0 0RECV_B1 0B1.0 0RECV_B2 0B2.0";
  PlacedStays stays;
  stays.passing = activation_stays(parse_program(text), {{0, 0, 1}}, {{.output = 64}}).passing;
  EXPECT_EQ(place(stays.passing), 128);
  EXPECT_EQ(waits_of(text, 2, {}, stays), "");
  EXPECT_EQ(waits_of(text, 4, {}, stays), "0SEND_F0");
  EXPECT_EQ(waits_of(text, 7, {}, stays), "0RECV_B0");
  // A receive may be what takes memory over.
  stays.passing = {{0, 0, 5, 64, 0, 0, StayKind::output},
                   {0, 6, 7, 64, 0, 0, StayKind::output_gradient}};
  EXPECT_EQ(waits_of(text, 6, {}, stays), "0SEND_F0");
}

}  // namespace
}  // namespace rankine
