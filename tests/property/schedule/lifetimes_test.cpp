#include "schedule/lifetimes.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "schedule/simulate.h"
#include "schedule/waits.h"
#include "support/staggered.h"
#include "support/stays.h"

namespace rankine {
namespace {

// Aligned and apart, in a pool that is no larger than they need.
void expect_placed(const std::vector<Stay>& stays, int64_t pool, const std::string& text) {
  int64_t end = 0;
  for (const Stay& a : stays) {
    ASSERT_LE(a.first, a.last) << text;
    ASSERT_EQ(a.offset % 64, 0) << text;
    end = std::max(end, a.offset + a.bytes);
  }
  test::expect_apart(stays, text);
  EXPECT_GE(pool, end) << text;
  EXPECT_LT(pool, end + 64) << text;
}

struct Case {
  std::vector<BlockTraits> blocks;
  std::vector<int64_t> bytes;
  Program program;
  int linger = 0;
  std::string text;
};

Case random_case(unsigned seed) {
  std::mt19937 rng(seed);
  Case c;
  c.blocks.resize(1 + rng() % 7);
  for (BlockTraits& block : c.blocks) {
    block.parameter_elements = 1 + static_cast<int64_t>(rng() % 100);
    block.backward_reads_parameters = rng() % 3 != 0;
    block.forward_reads_parameters = rng() % 4 != 0;
    block.splits_backward = rng() % 4 != 0;
    c.bytes.push_back(4 * block.parameter_elements);
  }
  if (c.blocks.size() > 1 && rng() % 2 == 0) c.blocks.back().tied = 0;
  const int micros = 1 + static_cast<int>(rng() % 5), warm = static_cast<int>(rng() % 3);
  const bool split = rng() % 2 == 0;
  const int late = split ? static_cast<int>(rng() % 3) : -1;
  c.program = expand_blocks(test::staggered(micros, warm, late),
                            {{0, 0, static_cast<int>(c.blocks.size())}}, c.blocks);
  c.program = add_reduces(
      c.program, c.blocks,
      {.every_micro = rng() % 4 != 0, .bucket_elements = static_cast<int64_t>(rng() % 200)});
  if (rng() % 2 == 0) c.program = add_gathers(c.program, c.blocks);
  c.linger = static_cast<int>(rng() % 5);
  c.text = fmt::format("seed {}, linger {}: {}", seed, c.linger, to_string(c.program));
  return c;
}

TEST(Lifetimes, RandomStaysNeverShareTimeAndMemory) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 rng(seed);
    std::vector<Stay> stays(rng() % 40);
    int64_t sum = 0;
    for (Stay& stay : stays) {
      stay.first = static_cast<int>(rng() % 50);
      stay.last = stay.first + static_cast<int>(rng() % 20);
      stay.bytes = static_cast<int64_t>(rng() % 300);
      sum += stay.bytes + 63;
    }
    const int64_t pool = place(stays);
    expect_placed(stays, pool, fmt::format("seed {}", seed));
    EXPECT_LE(pool, sum) << "seed " << seed;
  }
}

TEST(Lifetimes, GathersNeverShareTimeAndMemory) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Case c = random_case(seed);
    std::vector<Stay> stays = gather_stays(c.program, c.bytes);
    expect_placed(stays, place(stays), c.text);
    for (const Stay& a : stays)
      for (const Stay& b : stays)
        ASSERT_FALSE(&a != &b && a.block == b.block && test::share_time(a, b)) << c.text;
  }
}

TEST(Lifetimes, GradientsAreHeldFromFirstUseToReduction) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Case c = random_case(seed);
    std::vector<Stay> stays = gradient_stays(c.program, c.blocks, c.bytes, c.linger);
    expect_placed(stays, place(stays), c.text);
    const auto holders = [&](int block, int index) {
      return std::count_if(stays.begin(), stays.end(), [&](const Stay& stay) {
        return stay.block == block && stay.first <= index && index <= stay.last;
      });
    };
    for (int i = 0; i < static_cast<int>(c.program.size()); ++i) {
      const Action& action = c.program[static_cast<size_t>(i)];
      for (const int block : gradients_written(action, c.blocks))
        ASSERT_EQ(holders(block, i), 1) << "action " << i << " of " << c.text;
      if (action.kind == ActionKind::reduce) {
        ASSERT_EQ(holders(action.block, i), 1) << "action " << i << " of " << c.text;
      }
    }
  }
}

// Plays each program and looks at what really ran: whoever takes memory over finds it reduced.
TEST(Lifetimes, MemoryIsTakenOverOnlyOnceReduced) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Case c = random_case(seed);
    RankProgram rank{.place = {}, .program = c.program, .blocks = c.blocks};
    rank.stays.gradients = gradient_stays(c.program, c.blocks, c.bytes, c.linger);
    place(rank.stays.gradients);
    const CostTable cost{.seconds =
                             [&](int, const Action& action) {
                               return action.kind == ActionKind::reduce ? seed % 7 : 1.0;
                             },
                         .memory_change = {}};
    const RankTimeline played = simulate({rank}, cost).ranks[0];
    const auto entry = [](const std::vector<TimelineEntry>& entries, int index) {
      return *std::find_if(entries.begin(), entries.end(),
                           [&](const TimelineEntry& e) { return e.index == index; });
    };
    for (const Stay& before : rank.stays.gradients)
      for (const Stay& after : rank.stays.gradients) {
        if (after.first <= before.last || !test::share_memory(before, after)) continue;
        int reduce = before.first;
        while (c.program[static_cast<size_t>(reduce)].kind != ActionKind::reduce ||
               c.program[static_cast<size_t>(reduce)].block != before.block)
          ++reduce;
        ASSERT_LE(entry(played.communication, reduce).end, entry(played.compute, after.first).start)
            << "action " << after.first << " of " << c.text;
      }
  }
}

}  // namespace
}  // namespace rankine
