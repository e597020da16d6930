#include "comm/local_board.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

using Ranks = std::vector<int>;
constexpr double a_minute = 60;

TEST(LocalBoard, ARankWaitsForSeveralAtATime) {
  LocalBoard board = LocalBoard::create(4);
  board.begin_wait(0, 1);
  board.begin_wait(1, 2);
  board.begin_wait(1, 3);
  board.begin_wait(2, 3);
  // The end of one wait leaves what is known of the others.
  board.end_wait(1, 2);
  EXPECT_EQ(board.waiting_beyond(0, a_minute), (Ranks{1, 3}));
  EXPECT_EQ(board.waiting_beyond(1, a_minute), (Ranks{3}));
  EXPECT_EQ(board.waiting_beyond(3, a_minute), Ranks{}) << "it waits for nobody";
}

TEST(LocalBoard, OfTwoWaitsForOneRankOneRemains) {
  LocalBoard board = LocalBoard::create(2);
  board.begin_wait(0, 1);
  board.begin_wait(0, 1);
  board.end_wait(0, 1);
  EXPECT_EQ(board.waiting_beyond(0, a_minute), (Ranks{1}));
}

TEST(LocalBoard, ACircleIsLeftWhereOneOfItsRanksWaitsForAnother) {
  LocalBoard board = LocalBoard::create(4);
  board.begin_wait(0, 1);
  board.begin_wait(1, 0);
  EXPECT_EQ(board.waiting_beyond(0, a_minute), Ranks{}) << "all that are reached wait";
  board.begin_wait(1, 2);
  board.begin_wait(2, 3);
  EXPECT_EQ(board.waiting_beyond(0, a_minute), (Ranks{1, 2, 3}));
}

// Stopped while it waited: what it waited for may have come long since.
TEST(LocalBoard, ARankThatNoLongerSaysThatItWaitsHoldsUpTheOthers) {
  LocalBoard board = LocalBoard::create(3);
  board.begin_wait(0, 1);
  board.begin_wait(1, 2);
  board.begin_wait(2, 1);
  EXPECT_EQ(board.waiting_beyond(0, a_minute), Ranks{}) << "a circle";
  board.keep_waits(0);
  board.keep_waits(1);
  // Less than no time: whoever has not given up counts as silent.
  EXPECT_EQ(board.waiting_beyond(0, -1), (Ranks{1, 2}));
  board.keep_waits(2);
  board.go_on_waiting(1);
  EXPECT_EQ(board.waiting_beyond(0, -1), (Ranks{1}));
}

}  // namespace
}  // namespace rankine
