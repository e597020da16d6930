#include <gtest/gtest.h>

#include "schedule/passes.h"
#include "schedule/pipeline.h"
#include "schedule/simulate.h"

namespace rankine {
namespace {

std::string transferred(const Schedule& schedule, int rank) {
  return to_string(add_transfers(schedule.ranks[static_cast<size_t>(rank)], schedule, rank));
}

TEST(Transfers, ReceivesComeOneComputationEarly) {
  const Schedule schedule = make_schedule(ScheduleKind::one_forward_one_backward, {2, 3});
  EXPECT_EQ(transferred(schedule, 0),
            "0F0 0SEND_F0 0RECV_B0 0F1 0SEND_F1 0B0 0RECV_B1 0F2 0SEND_F2 0RECV_B2 0B1 0B2 0U");
  EXPECT_EQ(transferred(schedule, 1),
            "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1RECV_F2 1B1 1SEND_B1 1F2 1B2 1SEND_B2 1U");
}

TEST(Transfers, GradientsLeaveBeforeTheirWeights) {
  const Schedule schedule = make_schedule(ScheduleKind::zero_bubble, {2, 2});
  EXPECT_EQ(transferred(schedule, 1),
            "1RECV_F0 1F0 1RECV_F1 1I0 1SEND_B0 1F1 1I1 1SEND_B1 1W0 1W1 1U");
}

TEST(Transfers, TheTurnOfAVNeedsNone) {
  const Schedule schedule = parse_schedule(
      "rank 0: 0F0 3F0 3I0 3W0 0I0 0W0 0U\n"
      "rank 1: 1F0 2F0 2I0 1I0 1W0 2W0 1U\n");
  EXPECT_EQ(transferred(schedule, 0),
            "3RECV_F0 0F0 0SEND_F0 3F0 3I0 3SEND_B0 0RECV_B0 3W0 0I0 0W0 0U");
  EXPECT_EQ(transferred(schedule, 1),
            "1RECV_F0 1F0 2RECV_B0 2F0 2SEND_F0 2I0 1I0 1SEND_B0 1W0 2W0 1U");
  EXPECT_NO_THROW(check(schedule, 1));
}

TEST(Transfers, BlocksAreSurroundedAsTheirStage) {
  const Schedule schedule = make_schedule(ScheduleKind::one_forward_one_backward, {3, 1});
  const Program expanded =
      expand_blocks(schedule.ranks[1], {{1, 0, 2}}, std::vector<BlockTraits>(2));
  EXPECT_EQ(to_string(add_transfers(expanded, schedule, 1)),
            "1RECV_F0 1RECV_B0 1F0.0 1F0.1 1SEND_F0 1B0.1 1B0.0 1SEND_B0 1U");
}

TEST(Transfers, AHeadWithoutSplitStaysInItsStage) {
  const Schedule schedule = make_schedule(ScheduleKind::zero_bubble, {2, 2});
  std::vector<BlockTraits> blocks(2);
  blocks[1].splits_backward = false;
  EXPECT_EQ(
      to_string(add_transfers(expand_blocks(schedule.ranks[1], {{1, 0, 2}}, blocks), schedule, 1)),
      "1RECV_F0 1F0.0 1F0.1 1RECV_F1 1B0.1 1I0.0 1SEND_B0 1F1.0 1F1.1 1B1.1 1I1.0 1SEND_B1 "
      "1W0.0 1W1.0 1U");
}

TEST(Transfers, ReceivesKeepTheOrderOfTheSends) {
  const Schedule schedule = parse_schedule(
      "rank 0: 0F0 0F1 0F2 0B2 0B0 0B1 0U\n"
      "rank 1: 1F2 1F0 1F1 1B0 1B1 1B2 1U\n");
  EXPECT_EQ(transferred(schedule, 1),
            "1RECV_F0 1RECV_F1 1RECV_F2 1F2 1F0 1F1 1B0 1SEND_B0 1B1 1SEND_B1 1B2 1SEND_B2 1U");
  EXPECT_EQ(transferred(schedule, 0),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0RECV_B1 0RECV_B2 0F2 0SEND_F2 0B2 0B0 0B1 0U");
  EXPECT_NO_THROW(check(schedule, 3));
}

}  // namespace
}  // namespace rankine
