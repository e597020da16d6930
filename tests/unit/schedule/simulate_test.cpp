#include "schedule/simulate.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace rankine {
namespace {

using Kind = ActionKind;

CostTable costs(const std::map<Kind, double>& seconds) {
  return {.seconds =
              [seconds](int, const Action& action) {
                const auto found = seconds.find(action.kind);
                return found == seconds.end() ? 0.0 : found->second;
              },
          .memory_change = {}};
}

// "0F0[0-1] ..." of the entries in order.
std::string drawn(const std::vector<TimelineEntry>& entries) {
  std::string out;
  for (const TimelineEntry& entry : entries)
    out += fmt::format("{}{}[{:g}-{:g}]", out.empty() ? "" : " ", to_string(entry.action),
                       entry.start, entry.end);
  return out;
}

const char* const reduced = "0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0REDUCE0.0 0U";

TEST(Simulate, CopiesRunBesideComputationsOneAfterTheOther) {
  const Simulation played = simulate(
      {{{},
        parse_program("0LOAD.0 0LOAD.1 0F0.0 0STORE0.0 0F0.1 0B0.1 0FETCH0.0 0B0.0 0RELEASE.0 "
                      "0RELEASE.1 0U")}},
      costs({{Kind::forward, 1},
             {Kind::backward, 2},
             {Kind::load, 2},
             {Kind::store, 1},
             {Kind::fetch, 3}}));
  EXPECT_EQ(drawn(played.ranks[0].compute),
            "0F0.0[2-3] 0F0.1[4-5] 0B0.1[5-7] 0B0.0[10-12] 0U[12-12]");
  EXPECT_EQ(drawn(played.ranks[0].communication),
            "0LOAD.0[0-2] 0LOAD.1[2-4] 0STORE0.0[4-5] 0FETCH0.0[7-10]");
}

TEST(Simulate, ReductionsRunBesideComputations) {
  const std::vector<RankProgram> ranks = {{{.data = 0}, parse_program(reduced)},
                                          {{.data = 1}, parse_program(reduced)}};
  const Simulation played = simulate(
      ranks,
      costs({{Kind::forward, 1}, {Kind::backward, 2}, {Kind::reduce, 1}, {Kind::update, 1}}));
  for (const RankTimeline& timeline : played.ranks) {
    EXPECT_EQ(drawn(timeline.compute), "0F0.0[0-1] 0F0.1[1-2] 0B0.1[2-4] 0B0.0[4-6] 0U[7-8]");
    EXPECT_EQ(drawn(timeline.communication), "0REDUCE0.1[4-5] 0REDUCE0.0[6-7]");
  }
  EXPECT_DOUBLE_EQ(played.seconds, 8);
  EXPECT_DOUBLE_EQ(played.overlap(0), 0.5);
  EXPECT_DOUBLE_EQ(played.bubble(), 1.0 / 8);
}

TEST(Simulate, CollectivesWaitForTheSlowestAndQueue) {
  const std::vector<RankProgram> ranks = {{{.data = 0}, parse_program(reduced)},
                                          {{.data = 1}, parse_program(reduced)}};
  const CostTable cost{.seconds =
                           [](int rank, const Action& action) {
                             if (action.kind == Kind::backward) return rank == 1 ? 3.0 : 2.0;
                             if (action.kind == Kind::reduce) return rank == 1 ? 4.0 : 1.0;
                             return 1.0;
                           },
                       .memory_change = {}};
  const Simulation played = simulate(ranks, cost);
  EXPECT_EQ(drawn(played.ranks[0].compute),
            "0F0.0[0-1] 0F0.1[1-2] 0B0.1[2-4] 0B0.0[4-6] 0U[13-14]");
  EXPECT_EQ(drawn(played.ranks[0].communication), "0REDUCE0.1[5-9] 0REDUCE0.0[9-13]");
  EXPECT_DOUBLE_EQ(played.overlap(0), 1.0 / 8);
  EXPECT_DOUBLE_EQ(played.overlap(1), 3.0 / 8);
  EXPECT_DOUBLE_EQ(played.bubble(), 1 - (7.0 + 9.0) / 28);
}

TEST(Simulate, GathersHideBehindTheComputationBefore) {
  const std::vector<RankProgram> ranks = {
      {{}, parse_program("0GATHER.0 0GATHER.1 0F0.0 0RELEASE.0 0F0.1 0B0.1 0RELEASE.1 0B0.0 0U")}};
  const Simulation played =
      simulate(ranks, costs({{Kind::gather, 2}, {Kind::forward, 3}, {Kind::backward, 3}}));
  EXPECT_EQ(drawn(played.ranks[0].compute),
            "0F0.0[2-5] 0F0.1[5-8] 0B0.1[8-11] 0B0.0[11-14] 0U[14-14]");
  EXPECT_EQ(drawn(played.ranks[0].communication), "0GATHER.0[0-2] 0GATHER.1[2-4]");
  EXPECT_DOUBLE_EQ(played.overlap(0), 0.5);
}

TEST(Simulate, TiedParametersAreWaitedForWhereTraitsSaySo) {
  RankProgram rank{{}, parse_program("0GATHER.1 0GATHER.0 0B0.1")};
  const CostTable cost = costs({{Kind::gather, 2}, {Kind::backward, 1}});
  EXPECT_EQ(drawn(simulate({rank}, cost).ranks[0].compute), "0B0.1[2-3]");
  rank.blocks = {{.parameter_elements = 1}, {.parameter_elements = 1, .tied = 0}};
  EXPECT_EQ(drawn(simulate({rank}, cost).ranks[0].compute), "0B0.1[4-5]");
}

TEST(Simulate, SharedGradientMemoryIsWaitedFor) {
  RankProgram rank{{}, parse_program(reduced)};
  const CostTable cost = costs({{Kind::backward, 1}, {Kind::reduce, 5}});
  EXPECT_DOUBLE_EQ(simulate({rank}, cost).ranks[0].compute[3].start, 1);
  rank.blocks = {{.parameter_elements = 1}, {.parameter_elements = 1}};
  rank.stays.gradients = gradient_stays(rank.program, rank.blocks, {64, 64}, 0);
  place(rank.stays.gradients);
  EXPECT_DOUBLE_EQ(simulate({rank}, cost).ranks[0].compute[3].start, 6);
}

TEST(Simulate, RefreshesCountUntilTheirEnd) {
  const Simulation played = simulate({{{}, parse_program("0F0.0 0B0.0 0U 0REFRESH.0")}},
                                     costs({{Kind::update, 1}, {Kind::refresh, 3}}));
  EXPECT_EQ(drawn(played.ranks[0].communication), "0REFRESH.0[1-4]");
  EXPECT_DOUBLE_EQ(played.seconds, 4);
  EXPECT_DOUBLE_EQ(played.bubble(), 0.75);
}

TEST(Simulate, TransfersTakeTheirTime) {
  const std::vector<RankProgram> ranks = {
      {{.pipeline = 0}, parse_program("0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 0U")},
      {{.pipeline = 1}, parse_program("1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1U")}};
  const Simulation played = simulate(ranks, costs({{Kind::forward, 1},
                                                   {Kind::backward, 2},
                                                   {Kind::send_activation, 3},
                                                   {Kind::receive_gradient, 1}}));
  // The second activation waits for the channel, the first gradient crosses it the other way.
  EXPECT_EQ(drawn(played.ranks[0].communication),
            "0SEND_F0[1-4] 0SEND_F1[4-7] 0RECV_B0[7-8] 0RECV_B1[10-11]");
  EXPECT_EQ(drawn(played.ranks[0].compute), "0F0[0-1] 0F1[1-2] 0B0[8-10] 0B1[11-13] 0U[13-13]");
  EXPECT_EQ(drawn(played.ranks[1].compute), "1F0[4-5] 1B0[5-7] 1F1[7-8] 1B1[8-10] 1U[11-11]");
}

TEST(Simulate, CommunicationThatRunsTogetherCountsOnce) {
  const std::vector<RankProgram> ranks = {
      {{.pipeline = 0}, parse_program("0GATHER.0 0F0 0SEND_F0 0GATHER.0 0F1")},
      {{.pipeline = 1}, parse_program("1RECV_F0 1F0")}};
  const CostTable cost{.seconds =
                           [](int, const Action& action) {
                             if (action.kind == Kind::gather) return 2.0;
                             return action.kind == Kind::send_activation ? 5.0 : 3.0;
                           },
                       .memory_change = {}};
  // GATHER 0-2, F0 2-5, SEND_F0 5-10 over GATHER 5-7, F1 7-10: three of seven seconds.
  const Simulation played = simulate(ranks, cost);
  EXPECT_EQ(drawn(played.ranks[0].communication), "0GATHER.0[0-2] 0SEND_F0[5-10] 0GATHER.0[5-7]");
  EXPECT_EQ(drawn(played.ranks[0].compute), "0F0[2-5] 0F1[7-10]");
  EXPECT_DOUBLE_EQ(played.overlap(0), 3.0 / 7);
  EXPECT_DOUBLE_EQ(played.overlap(1), 0);
}

TEST(Simulate, AReceiveThatTakesMemoryOverHoldsItsRankUp) {
  std::vector<RankProgram> ranks = {
      {{.pipeline = 0}, parse_program("0F0.0 0SEND_F0 0RECV_B0 0F1.0 0SEND_F1 0B0.0 0U")},
      {{.pipeline = 1}, parse_program("1RECV_F0 1RECV_F1 1F0.0 1B0.0 1SEND_B0 1F1.0 1U")}};
  const CostTable cost = costs({{Kind::forward, 1}, {Kind::send_activation, 3}});
  EXPECT_EQ(drawn(simulate(ranks, cost).ranks[0].compute),
            "0F0.0[0-1] 0F1.0[1-2] 0B0.0[5-5] 0U[7-7]");
  ranks[0].stays.passing = {{0, 0, 1, 64, 0, 0, StayKind::output},
                            {0, 2, 5, 64, 0, 0, StayKind::output_gradient}};
  EXPECT_EQ(drawn(simulate(ranks, cost).ranks[0].compute),
            "0F0.0[0-1] 0F1.0[4-5] 0B0.0[5-5] 0U[8-8]");
}

TEST(Simulate, EachHalfOfABackwardCostsItsOwn) {
  const Simulation played =
      simulate({{{}, parse_program("0F0 0I0 0W0 0U")}},
               costs({{Kind::forward, 1}, {Kind::backward_input, 2}, {Kind::backward_weight, 4}}));
  EXPECT_EQ(drawn(played.ranks[0].compute), "0F0[0-1] 0I0[1-3] 0W0[3-7] 0U[7-7]");
  EXPECT_DOUBLE_EQ(played.bubble(), 0);
}

TEST(Simulate, MemoryFollowsTheActions) {
  const CostTable cost{.seconds = [](int, const Action&) { return 1.0; },
                       .memory_change = [](int rank, const Action& action) -> int64_t {
                         if (action.kind == Kind::forward) return rank == 0 ? 10 : 20;
                         if (action.kind == Kind::backward) return rank == 0 ? -10 : -20;
                         if (action.kind == Kind::gather) return 5;
                         return action.kind == Kind::release ? -5 : 0;
                       }};
  const char* text = "0GATHER.0 0F0.0 0F1.0 0B1.0 0RELEASE.0 0B0.0 0U";
  const Simulation played =
      simulate({{{.data = 0}, parse_program(text)}, {{.data = 1}, parse_program(text)}}, cost);
  std::vector<std::pair<double, int64_t>> points;
  for (const auto& [time, bytes] : played.ranks[0].memory) points.emplace_back(time, bytes);
  EXPECT_EQ(points, (std::vector<std::pair<double, int64_t>>{
                        {0, 0}, {0, 5}, {1, 15}, {2, 25}, {4, 15}, {4, 10}, {5, 0}}));
  EXPECT_EQ(played.ranks[0].peak_bytes, 25);
  EXPECT_EQ(played.ranks[1].peak_bytes, 45);
}

TEST(Simulate, NothingCostsNothing) {
  const Simulation played = simulate({{{}, parse_program(reduced)}}, costs({}));
  EXPECT_DOUBLE_EQ(played.seconds, 0);
  EXPECT_DOUBLE_EQ(played.overlap(0), 1);
  EXPECT_DOUBLE_EQ(played.bubble(), 0);
}

TEST(Simulate, ProgramsThatNeverEndAreRefused) {
  EXPECT_THROW(simulate({{{.pipeline = 0}, parse_program("0F0 0RECV_B0 0B0 0SEND_F0 0U")},
                         {{.pipeline = 1}, parse_program("1RECV_F0 1F0 1B0 1SEND_B0 1U")}},
                        costs({})),
               Error);
  EXPECT_THROW(simulate({{{}, parse_program("0F0")}}, costs({{Kind::forward, -1}})), Error);
}

}  // namespace
}  // namespace rankine
