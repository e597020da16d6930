#include "ops/cpu/team.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace rankine {
namespace {

using Parts = std::vector<TeamPart>;

// What each thread was given; thread -1 where none came.
Parts parts_of(Team& team, bool even) {
  Parts parts(static_cast<size_t>(team.call().threads), TeamPart{-1, 0, 0});
  const TeamCall call = team.call();
  call.run(
      call.team, even,
      [](const void* context, TeamPart part) {
        (*static_cast<Parts* const*>(context))->at(static_cast<size_t>(part.thread)) = part;
      },
      std::array<Parts*, 1>{&parts}.data());
  return parts;
}

void expect_whole(const Parts& parts) {
  double end = 0;
  for (size_t t = 0; t < parts.size(); ++t) {
    EXPECT_EQ(parts[t].thread, static_cast<int>(t));
    EXPECT_EQ(parts[t].from, end) << "thread " << t << " goes on where the one before ended";
    end = parts[t].to;
  }
  EXPECT_EQ(end, 1);
}

TEST(Team, GivesEachThreadItsShareOfTheWhole) {
  for (const int threads : {1, 2, 3, 7}) {
    Team team(threads);
    for (int i = 0; i < 50; ++i)
      for (const bool even : {true, false}) {
        const Parts parts = parts_of(team, even);
        expect_whole(parts);
        if (!even) continue;
        for (const TeamPart& part : parts) EXPECT_NEAR(part.to - part.from, 1.0 / threads, 1e-12);
      }
  }
}

// What earlier works wrote is seen by later ones, whichever thread does them.
TEST(Team, WorksFollowEachOther) {
  constexpr size_t count = 64;
  constexpr int works = 20000;
  Team team(3);
  struct Context {
    std::array<int, count> from{}, to{};
  } data;
  const TeamCall call = team.call();
  for (int i = 0; i < works; ++i) {
    Context* const context = &data;
    call.run(
        call.team, i % 3 == 0,
        [](const void* opaque, TeamPart part) {
          Context& c = **static_cast<Context* const*>(opaque);
          const auto at = [](double share) { return static_cast<size_t>(count * share + 0.5); };
          for (size_t j = at(part.from); j < at(part.to); ++j) c.to[j] = c.from[count - 1 - j] + 1;
        },
        &context);
    data.from = data.to;
  }
  for (const int value : data.to) EXPECT_EQ(value, works);
}

TEST(Team, SleepingThreadsWakeUp) {
  Team team(3);
  for (int i = 0; i < 5; ++i) {
    expect_whole(parts_of(team, false));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// The calling thread waits for a slow one, however long that takes, and gives it less next time.
TEST(Team, ASlowThreadGetsLess) {
  Team team(2);
  const TeamCall call = team.call();
  for (int i = 0; i < 40; ++i)
    call.run(
        call.team, false,
        [](const void*, TeamPart part) {
          const double milliseconds = (part.thread == 1 ? 3.0 : 1.0) * 4 * (part.to - part.from);
          std::this_thread::sleep_for(
              std::chrono::microseconds(static_cast<int>(1000 * milliseconds)));
        },
        nullptr);
  EXPECT_GT(team.bounds()[1], 0.6);
  EXPECT_LE(team.bounds()[1], 0.85);
  EXPECT_EQ(team.bounds()[2], 1);
}

TEST(Team, EndsWithoutWork) {
  const Team team(4);
  EXPECT_EQ(team.bounds().size(), 5u);
}

}  // namespace
}  // namespace rankine
