#include "schedule/waits.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rankine {
namespace {

// What the action at `index` waits for, printed.
std::string waits_of(const char* text, size_t index, const std::vector<BlockTraits>& blocks = {},
                     const std::vector<Stay>& gradients = {}) {
  const Program program = parse_program(text);
  std::vector<int> found = waits(program, blocks, gradients)[index];
  std::sort(found.begin(), found.end());
  Program out;
  for (const int i : found) out.push_back(program[static_cast<size_t>(i)]);
  return to_string(out);
}

const std::vector<BlockTraits> tied = {
    {.parameter_elements = 8, .backward_reads_parameters = false},
    {.parameter_elements = 2, .tied = 0}};

TEST(Waits, ComputationsWaitForWhatTheyRead) {
  const char* text = "0GATHER.0 0GATHER.1 0F0.0 0F0.1 0B0.1 0B0.0";
  EXPECT_EQ(waits_of(text, 2, tied), "0GATHER.0");
  EXPECT_EQ(waits_of(text, 3, tied), "0GATHER.0 0GATHER.1");
  EXPECT_EQ(waits_of(text, 4, tied), "0GATHER.1");
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
  EXPECT_EQ(waits_of(text, 7, tied), "0REDUCE0.0");
  EXPECT_EQ(waits_of(text, 8, tied), "0REDUCE0.1");
  EXPECT_EQ(waits_of(text, 9, tied), "0REDUCE0.0");
  EXPECT_EQ(waits_of(text, 7), "");
}

TEST(Waits, UpdateWaitsForReductionsAndSends) {
  EXPECT_EQ(waits_of("1RECV_F0 1F0 1B0 1REDUCE0.0 1REDUCE0.1 1SEND_B0 1U 1REFRESH.0", 6),
            "1REDUCE0.0 1REDUCE0.1 1SEND_B0");
  EXPECT_EQ(waits_of("1RECV_F0 1F0 1B0 1REDUCE0.0 1REDUCE0.1 1SEND_B0 1U 1REFRESH.0", 7), "");
}

TEST(Waits, TakingMemoryOverWaitsForItsReduction) {
  const char* text = "0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0REDUCE0.0 0U";
  const std::vector<BlockTraits> plain = {{.parameter_elements = 1}, {.parameter_elements = 1}};
  std::vector<Stay> stays = gradient_stays(parse_program(text), plain, {64, 64}, 0);
  EXPECT_EQ(place(stays), 64);
  EXPECT_EQ(waits_of(text, 4, plain, stays), "0REDUCE0.1");
  EXPECT_EQ(waits_of(text, 2, plain, stays), "");
  stays = gradient_stays(parse_program(text), plain, {64, 64}, 1);
  EXPECT_EQ(place(stays), 128);
  EXPECT_EQ(waits_of(text, 4, plain, stays), "");
}

}  // namespace
}  // namespace rankine
