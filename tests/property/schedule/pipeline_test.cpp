#include "schedule/pipeline.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "schedule/v_play.h"

namespace rankine {
namespace {

struct Case {
  ScheduleKind kind = ScheduleKind::gpipe;
  PipelineShape shape;
  Schedule schedule;
  std::string text;
};

Case random_case(unsigned seed, int ranks, int micros) {
  std::mt19937 rng(seed);
  const auto draw = [&](int count) {
    return 1 + static_cast<int>(rng() % static_cast<unsigned>(count));
  };
  Case c;
  c.kind = static_cast<ScheduleKind>(rng() % 5);
  // Small shapes most of the time, as the large ones take long.
  const bool large = rng() % 16 == 0;
  c.shape = {draw(large ? ranks : std::min(ranks, 6)), draw(large ? micros : std::min(micros, 14))};
  if (c.kind == ScheduleKind::interleaved) c.shape.virtual_stages = 1 + draw(3);
  const ComputationSeconds seconds = {draw(20) / 10.0, draw(20) / 10.0, draw(20) / 10.0,
                                      static_cast<double>(rng() % 10) / 10};
  c.schedule = make_schedule(c.kind, c.shape, seconds);
  c.text =
      fmt::format("seed {}: {}, {} ranks, {} micro-batches, {} stages per rank", seed,
                  schedule_name(c.kind), c.shape.ranks, c.shape.micros, c.shape.virtual_stages);
  return c;
}

std::string fault(const Schedule& schedule, int micros) {
  try {
    check(schedule, micros);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage) << e.what();
    return e.what();
  }
}

TEST(Pipeline, EveryScheduleIsCompleteAndEnds) {
  for (unsigned seed = 0; seed < 10'000; ++seed) {
    const Case c = random_case(seed, 16, 64);
    ASSERT_EQ(fault(c.schedule, c.shape.micros), "") << c.text;
    if (seed % 10 == 0) {
      ASSERT_EQ(parse_schedule(to_string(c.schedule)), c.schedule) << c.text;
    }
  }
}

// zb-v takes the best of several plans; each must be one.
TEST(Pipeline, EveryPlanOfAVIsCompleteAndEnds) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 rng(seed);
    const auto draw = [&](int count) {
      return 1 + static_cast<int>(rng() % static_cast<unsigned>(count));
    };
    const int ranks = draw(9), micros = draw(24);
    const ComputationSeconds seconds = {draw(20) / 10.0, draw(20) / 10.0, draw(20) / 10.0,
                                        (draw(10) - 1) / 10.0};
    std::vector<VPlay> plays = play_v_in_rounds(ranks, micros, seconds);
    plays.push_back(play_v_greedily(ranks, micros, seconds));
    Schedule schedule = make_schedule(ScheduleKind::zb_v, {ranks, micros}, seconds);
    for (const VPlay& play : plays) {
      schedule.ranks = play.programs();
      for (Program& program : schedule.ranks) {
        ASSERT_LE(peak_in_flight(program), 2 * ranks) << "seed " << seed;
        program.push_back({program.front().stage, ActionKind::update});
      }
      ASSERT_EQ(fault(schedule, micros), "") << "seed " << seed;
    }
  }
}

TEST(Pipeline, NoneHoldsMoreThanItsKindAllows) {
  for (unsigned seed = 0; seed < 2'000; ++seed) {
    const Case c = random_case(seed, 16, 64);
    const int p = c.shape.ranks, m = c.shape.micros, v = c.shape.virtual_stages;
    for (int rank = 0; rank < p; ++rank) {
      const int bound = c.kind == ScheduleKind::gpipe                      ? m
                        : c.kind == ScheduleKind::one_forward_one_backward ? p - rank
                        : c.kind == ScheduleKind::interleaved ? 2 * (p - 1 - rank) + (v - 1) * p + 1
                        : c.kind == ScheduleKind::zero_bubble ? p
                                                              : 2 * p;
      ASSERT_LE(peak_in_flight(c.schedule.ranks[static_cast<size_t>(rank)]), bound)
          << "rank " << rank << " of " << c.text;
    }
  }
}

// What is computed for what, in another order or another number, is found out.
TEST(Pipeline, EveryMutationIsReportedWithItsRankAndAction) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Case c = random_case(seed, 4, 6);
    for (size_t rank = 0; rank < c.schedule.ranks.size(); ++rank) {
      const Program& good = c.schedule.ranks[rank];
      const auto expect_report = [&](const Program& program, const std::string& what) {
        Schedule mutated = c.schedule;
        mutated.ranks[rank] = program;
        const std::string message = fault(mutated, c.shape.micros);
        EXPECT_NE(message.find(fmt::format("rank {}", rank)), std::string::npos)
            << what << " of rank " << rank << " of " << c.text << "\n"
            << message;
        EXPECT_NE(message.find("action "), std::string::npos) << what << ", " << message;
      };
      for (size_t i = 0; i < good.size(); ++i) {
        const std::string name = fmt::format("action {} ({})", i, to_string(good[i]));
        Program dropped = good, doubled = good;
        dropped.erase(dropped.begin() + static_cast<ptrdiff_t>(i));
        doubled.insert(doubled.begin() + static_cast<ptrdiff_t>(i), good[i]);
        expect_report(dropped, "without " + name);
        expect_report(doubled, "twice " + name);
        // Two computations of the same stage and micro-batch depend on one another.
        for (size_t k = i + 1; k < good.size(); ++k) {
          const bool update = good[k].kind == ActionKind::update;
          if (!update && (good[k].stage != good[i].stage || good[k].micro != good[i].micro))
            continue;
          Program swapped = good;
          std::swap(swapped[i], swapped[k]);
          expect_report(swapped, name + " and " + to_string(good[k]) + " swapped");
        }
      }
    }
  }
}

// A rank that wants micro-batches in an order in which its neighbours cannot have them yet.
TEST(Pipeline, RanksThatWaitForEachOtherAreReported) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Case c = random_case(seed, 5, 8);
    if (c.shape.ranks < 2 || c.shape.micros < 2 || c.kind == ScheduleKind::gpipe) continue;
    // The first rank backwards its first micro-batch before it forwards the last; the second rank
    // forwards that one before all others.
    const int last = c.shape.micros - 1;
    Schedule stuck = c.schedule;
    Program& first = stuck.ranks[0];
    const auto forward =
        std::find(first.begin(), first.end(), Action{0, ActionKind::forward, last});
    const Action moved = *forward;
    first.erase(forward);
    const auto backward = std::find_if(first.begin(), first.end(), [&](const Action& action) {
      return action.stage == 0 && action.micro == 0 && action.kind != ActionKind::forward;
    });
    const auto own = std::find_if(first.begin(), first.end(), [&](const Action& action) {
      return action.micro == last && action.stage != 0;
    });
    if (own < backward) continue;
    first.insert(backward + 1, moved);
    Program& second = stuck.ranks[1];
    const Action early{1, ActionKind::forward, last};
    std::erase(second, early);
    second.insert(second.begin(), early);
    const std::string message = fault(stuck, c.shape.micros);
    EXPECT_NE(message.find("never end"), std::string::npos) << c.text << "\n" << message;
  }
}

}  // namespace
}  // namespace rankine
