#include "schedule/pipeline.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "schedule/simulate.h"

namespace rankine {
namespace {

using enum ScheduleKind;

std::string fault(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage) << e.what();
    return e.what();
  }
}
void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no '" << part << "' in: " << message;
}

TEST(Pipeline, GridOfGPipe) {
  EXPECT_EQ(to_grid(make_schedule(gpipe, {3, 4})),
            "rank 0: F0 F1 F2 F3 .  .  .  .  .  .  B0 B0 B1 B1 B2 B2 B3 B3\n"
            "rank 1: .  F0 F1 F2 F3 .  .  .  B0 B0 B1 B1 B2 B2 B3 B3 .  .\n"
            "rank 2: .  .  F0 F1 F2 F3 B0 B0 B1 B1 B2 B2 B3 B3 .  .  .  .\n");
}

TEST(Pipeline, GridOfOneForwardOneBackward) {
  EXPECT_EQ(to_grid(make_schedule(one_forward_one_backward, {3, 4})),
            "rank 0: F0 F1 F2 .  .  .  .  B0 B0 F3 B1 B1 .  B2 B2 .  B3 B3\n"
            "rank 1: .  F0 F1 .  .  B0 B0 F2 B1 B1 F3 B2 B2 .  B3 B3 .  .\n"
            "rank 2: .  .  F0 B0 B0 F1 B1 B1 F2 B2 B2 F3 B3 B3 .  .  .  .\n");
}

TEST(Pipeline, GridOfZeroBubble) {
  EXPECT_EQ(to_grid(make_schedule(zero_bubble, {3, 4})),
            "rank 0: F0 F1 F2 .  .  B0 B0 F3 B1 B1 B2 B2 B3 B3\n"
            "rank 1: .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3\n"
            "rank 2: .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3\n");
}

TEST(Pipeline, GridOfInterleaved) {
  EXPECT_EQ(to_grid(make_schedule(interleaved, {2, 4, 2})),
            "rank 0: 0F0 0F1 2F0 2F1 0F2 .   2B0 2B0 0F3 2B1 2B1 2F2 0B0 0B0 2F3 0B1 0B1 .   2B2 "
            "2B2 .   2B3 2B3 0B2 0B2 0B3 0B3\n"
            "rank 1: .   1F0 1F1 3F0 3B0 3B0 3F1 3B1 3B1 1F2 1B0 1B0 1F3 1B1 1B1 3F2 3B2 3B2 3F3 "
            "3B3 3B3 1B2 1B2 1B3 1B3 .   .\n");
}

TEST(Pipeline, GridOfZbV) {
  EXPECT_EQ(to_grid(make_schedule(zb_v, {2, 4})),
            "rank 0: 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0B0 0B0 3F2 3I2 3W2 0B1 0B1 3F3 3I3 "
            "0I2 3W3 0I3 0W2 0W3 .\n"
            "rank 1: .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 1I2 "
            "2I3 1I3 2W2 1W2 2W3 1W3\n");
}

TEST(Pipeline, EqualTimesLeaveTheTextbookBubble) {
  const CostTable cost{.seconds =
                           [](int, const Action& action) {
                             if (!computes(action.kind)) return 0.0;
                             return action.kind == ActionKind::backward ? 2.0 : 1.0;
                           },
                       .memory_change = {}};
  for (const ScheduleKind kind : {gpipe, one_forward_one_backward, zero_bubble})
    for (int p = 1; p <= 8; ++p)
      for (int m = p; m <= 20; ++m) {
        const Schedule schedule = make_schedule(kind, {p, m});
        std::vector<RankProgram> ranks;
        for (int rank = 0; rank < p; ++rank)
          ranks.push_back({.place = {.pipeline = rank},
                           .program = add_transfers(schedule.ranks[static_cast<size_t>(rank)],
                                                    schedule, rank)});
        const Simulation played = simulate(ranks, cost);
        const double idle = kind == zero_bubble ? p - 1 : 3 * (p - 1);
        const std::string text = fmt::format("{}, {} ranks, {}", schedule_name(kind), p, m);
        EXPECT_NEAR(played.seconds, 3 * m + idle, 1e-9) << text;
        EXPECT_NEAR(played.bubble(), idle / (3 * m + idle), 1e-9) << text;
      }
}

TEST(Pipeline, InterleavedDividesTheBubble) {
  for (int p = 2; p <= 6; ++p)
    for (int v = 2; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p) {
        const std::string grid = to_grid(make_schedule(interleaved, {p, m, v}));
        const std::string row = grid.substr(0, grid.find('\n'));
        const auto cells = std::count(row.begin(), row.end(), 'F') +
                           std::count(row.begin(), row.end(), 'B') +
                           std::count(row.begin(), row.end(), '.');
        EXPECT_EQ(cells, 3 * (m * v + p - 1)) << p << " ranks, " << m << " micro-batches, " << v;
      }
}

TEST(Pipeline, ZbVOfEqualTimesHasNoBubble) {
  for (int p = 1; p <= 12; ++p)
    for (const int m : {2 * p, 2 * p + 1, 3 * p, 5 * p}) {
      const std::string grid = to_grid(make_schedule(zb_v, {p, m}));
      const size_t last = grid.rfind("rank");
      const std::string row = grid.substr(last + 5, grid.size());
      EXPECT_EQ(std::count(row.begin(), row.end(), '.'), p - 1)
          << p << " ranks, " << m << " micro-batches\n"
          << grid;
    }
}

TEST(Pipeline, InFlightIsWhatTheorySays) {
  for (int p = 1; p <= 16; ++p)
    for (int m = 1; m <= 40; m += m < 20 ? 1 : 7) {
      const Schedule all = make_schedule(gpipe, {p, m}),
                     one = make_schedule(one_forward_one_backward, {p, m}),
                     zero = make_schedule(zero_bubble, {p, m}), v = make_schedule(zb_v, {p, m});
      for (int stage = 0; stage < p; ++stage) {
        const auto rank = static_cast<size_t>(stage);
        const std::string text = fmt::format("{} ranks, {} micro-batches, stage {}", p, m, stage);
        EXPECT_EQ(peak_in_flight(all.ranks[rank], stage), m) << text;
        EXPECT_EQ(peak_in_flight(one.ranks[rank], stage), std::min(m, p - stage)) << text;
        EXPECT_LE(peak_in_flight(zero.ranks[rank], stage), std::min(m, p)) << text;
        Program until_input = zero.ranks[rank];
        std::erase_if(until_input, [](const Action& action) {
          return action.kind == ActionKind::backward_weight;
        });
        EXPECT_EQ(peak_in_flight(until_input, stage), std::min(m, p - stage)) << text;
        EXPECT_LE(peak_in_flight(v.ranks[rank]), 2 * std::min(m, p)) << text;
      }
    }
}

TEST(Pipeline, InFlightOfInterleaved) {
  for (int p = 1; p <= 8; ++p)
    for (int v = 2; v <= 4; ++v)
      for (int m = 1; m <= 30; ++m) {
        const Schedule schedule = make_schedule(interleaved, {p, m, v});
        for (int rank = 0; rank < p; ++rank) {
          const int bound = std::min(m * v, 2 * (p - 1 - rank) + (v - 1) * p + 1);
          const int peak = peak_in_flight(schedule.ranks[static_cast<size_t>(rank)]);
          const std::string text = fmt::format("{} ranks, {} micro-batches, {} stages", p, m, v);
          EXPECT_LE(peak, bound) << text;
          if (m % p == 0) {
            EXPECT_EQ(peak, bound) << text;
          }
        }
      }
}

TEST(Pipeline, StagesHaveTheirRanks) {
  EXPECT_EQ(make_schedule(gpipe, {3, 2}).rank_of_stage, (std::vector{0, 1, 2}));
  EXPECT_EQ(make_schedule(interleaved, {2, 2, 3}).rank_of_stage, (std::vector{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(make_schedule(zb_v, {3, 2}).rank_of_stage, (std::vector{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(make_schedule(zb_v, {3, 2, 2}), make_schedule(zb_v, {3, 2}));
}

TEST(Pipeline, NamesAreThoseOfPeople) {
  for (const std::string& name : schedule_names())
    EXPECT_EQ(schedule_name(parse_schedule_kind(name)), name);
  EXPECT_EQ(schedule_name(one_forward_one_backward), "1f1b");
  EXPECT_EQ(schedule_name(zb_v), "zb-v");
  expect_parts(
      fault([] { parse_schedule_kind("zerobubble"); }),
      {"'zerobubble'", "gpipe, 1f1b, interleaved, zero-bubble, zb-v", "did you mean zero-bubble?"});
}

TEST(Pipeline, ShapesThatDoNotFitAreRefused) {
  expect_parts(fault([] { make_schedule(gpipe, {2, 2, 2}); }), {"gpipe", "not 2", "interleaved"});
  expect_parts(fault([] { make_schedule(interleaved, {2, 2, 1}); }), {"at least 2", "1f1b"});
  expect_parts(fault([] { make_schedule(zb_v, {2, 2, 3}); }), {"exactly 2", "not 3"});
  expect_parts(fault([] { make_schedule(gpipe, {0, 2}); }), {"0 ranks", "at least 1"});
  expect_parts(fault([] { make_schedule(gpipe, {2, 0}); }), {"0 micro-batches"});
  expect_parts(fault([] { make_schedule(gpipe, {2, 2, 0}); }), {"0 virtual stages"});
}

TEST(Pipeline, TextsPrintAndParseBack) {
  const Schedule schedule = make_schedule(one_forward_one_backward, {2, 2});
  const std::string text =
      "rank 0: 0F0 0F1 0B0 0B1 0U\n"
      "rank 1: 1F0 1B0 1F1 1B1 1U\n";
  EXPECT_EQ(to_string(schedule), text);
  EXPECT_EQ(parse_schedule(text), schedule);
  EXPECT_EQ(parse_schedule("# a comment\n\n  rank 0:\t0F0 0F1 0B0 0B1 0U \r\n   # another\n"
                           "rank 1: 1F0 1B0 1F1 1B1 1U"),
            schedule);
  const Schedule v = make_schedule(zb_v, {3, 5});
  EXPECT_EQ(parse_schedule(to_string(v)), v);
}

TEST(Pipeline, TextsThatAreNoScheduleNameLineAndWord) {
  const auto refuse = [](const char* text, const std::vector<std::string>& parts) {
    expect_parts(fault([&] { parse_schedule(text); }), parts);
  };
  refuse("", {"no rank"});
  refuse("# only\n", {"no rank"});
  refuse("\nstage 0: 0F0", {"line 2", "'stage'"});
  refuse("rank 0 0F0", {"line 1", "'0'", "'0:'"});
  refuse("rank 0: 0F0 0B0 0U\nrank 2: 1F0", {"line 2", "'2:'", "'1:'"});
  refuse("rank 0: 0F0 0X0", {"line 1", "'0X0'"});
  refuse("rank 0: 0F0.1", {"line 1", "'0F0.1'", "whole stages"});
  refuse("rank 0: 0F0 0SEND_F0", {"line 1", "'0SEND_F0'", "added later"});
  refuse("rank 0: 0F0 0B0 0U\n\nrank 1: 0F1", {"line 3", "'0F1'", "rank 0 computes too"});
  refuse("rank 0: 0F0 0B0 0U\nrank 1: 2F0 2B0 2U", {"stage 2 but not stage 1"});
}

TEST(Pipeline, FaultsNameTheFileAndTheLine) {
  const auto refuse = [](const char* text, int micros, const std::vector<std::string>& parts) {
    ScheduleSource source{"'s.txt'"};
    expect_parts(fault([&] { check(parse_schedule(text, source), micros, source); }), parts);
  };
  refuse("# none", 1, {"'s.txt' has no rank"});
  refuse("\nrank 0: 0F0 0X0", 1, {"'s.txt', line 2: ", "'0X0'"});
  refuse("rank 0 0F0", 1, {"'s.txt', line 1: '0'"});
  refuse("rank 0: 0F0 0B0 0U\n\nrank 1: 2F0 2B0 2U", 1,
         {"'s.txt', line 3, rank 1 computes stage 2 but not stage 1"});
  refuse("# two\nrank 0: 0F0 0B0 0U\n\nrank 1: 1F0 1B0 1B0 1U", 1,
         {"'s.txt', line 4, rank 1: ", "action 2 (1B0)"});
  refuse("rank 0: 0F0 0B0 0F1 0B1 0U\nrank 1: 1F1 1F0 1B1 1B0 1U", 2, {"'s.txt', ", "never end"});
}

TEST(Pipeline, FaultsNameRankAndAction) {
  const auto refuse = [](const char* text, int micros, const std::vector<std::string>& parts) {
    expect_parts(fault([&] { check(parse_schedule(text), micros); }), parts);
  };
  EXPECT_EQ(fault([] { check(parse_schedule("rank 0: 0F0 0B0 0U\nrank 1: 1F0 1I0 1W0 1U"), 1); }),
            "");
  refuse("rank 0: 0F0 0B0 0U\nrank 1: 1F0 1B0 1B0 1U", 1, {"rank 1", "action 2 (1B0)"});
  refuse("rank 0: 0F0 0B0 0U\nrank 1: 1F0 1B0 1U", 2, {"rank 0", "micro-batch 1", "stage 0"});
  refuse("rank 0: 0F0 0B0\nrank 1: 1F0 1B0 1U", 1, {"rank 0", "update is missing"});
  // The second stage wants the second micro-batch first, the first stage its gradient before that.
  refuse("rank 0: 0F0 0B0 0F1 0B1 0U\nrank 1: 1F1 1F0 1B1 1B0 1U", 2,
         {"never end", "rank 0", "action 4 (0B0)", "rank 1", "(1F1)"});
  Schedule moved = make_schedule(gpipe, {2, 2});
  std::swap(moved.rank_of_stage[0], moved.rank_of_stage[1]);
  expect_parts(fault([&] { check(moved, 2); }), {"rank 0", "action 0 (0F0)", "stage of rank 1"});
  moved = make_schedule(gpipe, {2, 2});
  moved.rank_of_stage.push_back(1);
  expect_parts(fault([&] { check(moved, 2); }), {"rank 1", "never computes its stage 2"});
  moved.rank_of_stage = {0};
  expect_parts(fault([&] { check(moved, 2); }), {"rank 1", "action 0 (1F0)", "stage 1 of 1"});
}

}  // namespace
}  // namespace rankine
