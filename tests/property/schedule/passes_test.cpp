#include "schedule/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "schedule/simulate.h"
#include "support/staggered.h"

namespace rankine {
namespace {

struct Case {
  std::vector<BlockTraits> blocks;
  int micros = 1;
  ReducePlan reduce;
  bool gathers = false, refreshes = false;
  Program computations, program;
  std::string text;  // for failures
};

Case random_case(unsigned seed) {
  std::mt19937 rng(seed);
  Case c;
  c.blocks.resize(1 + rng() % 7);
  for (BlockTraits& block : c.blocks) {
    block.parameter_elements = rng() % 6 == 0 ? 0 : 1 + static_cast<int64_t>(rng() % 100);
    block.backward_reads_parameters = rng() % 3 != 0;
    block.forward_reads_parameters = rng() % 4 != 0;
    block.splits_backward = rng() % 4 != 0;
  }
  if (c.blocks.size() > 1 && rng() % 2 == 0 && c.blocks[0].parameter_elements > 0)
    c.blocks.back().tied = 0;
  c.micros = 1 + static_cast<int>(rng() % 6);
  c.reduce = {.every_micro = rng() % 2 == 0,
              .bucket_elements = rng() % 2 == 0 ? 0 : static_cast<int64_t>(rng() % 300)};
  c.gathers = rng() % 2 == 0;
  c.refreshes = !c.gathers && rng() % 2 == 0;
  const int warm = static_cast<int>(rng() % 4), late = static_cast<int>(rng() % 4) - 1;
  c.computations = expand_blocks(test::staggered(c.micros, warm, late),
                                 {{0, 0, static_cast<int>(c.blocks.size())}}, c.blocks);
  c.program = add_reduces(c.computations, c.blocks, c.reduce);
  if (c.gathers) c.program = add_gathers(c.program, c.blocks);
  if (c.refreshes) c.program = add_refreshes(c.program, c.blocks);
  c.text = fmt::format("seed {}: {}", seed, to_string(c.program));
  return c;
}

std::vector<RankProgram> replicas(const Case& c, int count) {
  std::vector<RankProgram> ranks;
  for (int data = 0; data < count; ++data)
    ranks.push_back({.place = {.data = data}, .program = c.program, .blocks = c.blocks});
  return ranks;
}

bool is_collective(const Action& action) {
  return action.kind == ActionKind::gather || action.kind == ActionKind::reduce ||
         action.kind == ActionKind::refresh;
}

// What stands guard before a step program runs.
bool reported(const Case& c, const std::vector<RankProgram>& ranks) {
  try {
    for (const RankProgram& rank : ranks) check(rank.program, c.micros, c.blocks);
    check_completes(ranks);
    return false;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::internal) << c.text;
    return true;
  }
}

TEST(Passes, ProgramsCheckCompleteAndPrintBack) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const Case c = random_case(seed);
    ASSERT_NO_THROW(check(c.program, c.micros)) << c.text;
    ASSERT_NO_THROW(check(c.program, c.micros, c.blocks)) << c.text;
    ASSERT_NO_THROW(check_completes(replicas(c, 1 + static_cast<int>(seed % 8)))) << c.text;
    ASSERT_EQ(parse_program(to_string(c.program)), c.program) << c.text;
  }
}

TEST(Passes, ComputationsKeepTheirOrder) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Case c = random_case(seed);
    Program left;
    std::copy_if(c.program.begin(), c.program.end(), std::back_inserter(left),
                 [](const Action& action) {
                   return !is_collective(action) && action.kind != ActionKind::release;
                 });
    ASSERT_EQ(left, c.computations) << c.text;
  }
}

TEST(Passes, GathersArriveBeforeTheComputationBeforeTheirUse) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Case c = random_case(seed);
    if (!c.gathers) continue;
    for (size_t i = 0; i < c.program.size(); ++i) {
      if (c.program[i].kind != ActionKind::gather) continue;
      int distance = 0;  // computations from the GATHER to the first that reads it
      bool read = false;
      for (size_t k = i + 1; k < c.program.size() && !read; ++k) {
        if (!computes(c.program[k].kind)) continue;
        const std::vector<int> reads = parameters_read(c.program[k], c.blocks);
        read = std::find(reads.begin(), reads.end(), c.program[i].block) != reads.end();
        ++distance;
      }
      ASSERT_TRUE(read) << "action " << i << " of " << c.text;
      const bool first =
          std::none_of(c.program.begin(), c.program.begin() + static_cast<ptrdiff_t>(i),
                       [](const Action& a) { return a.kind == ActionKind::forward; });
      ASSERT_TRUE(distance == 2 || (first && distance == 1)) << "action " << i << " of " << c.text;
    }
  }
}

TEST(Passes, EveryMutationOfOneRanksCollectivesIsReported) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    const Case c = random_case(seed);
    const int data = 2 + static_cast<int>(seed % 3);
    const size_t victim = seed % static_cast<unsigned>(data);
    ASSERT_FALSE(reported(c, replicas(c, data))) << c.text;
    ptrdiff_t previous = -1;
    for (ptrdiff_t i = 0; i < std::ssize(c.program); ++i) {
      const Action action = c.program[static_cast<size_t>(i)];
      if (!is_collective(action)) continue;
      std::vector<RankProgram> dropped = replicas(c, data), doubled = dropped, swapped = dropped;
      Program& without = dropped[victim].program;
      without.erase(without.begin() + i);
      EXPECT_TRUE(reported(c, dropped)) << "without action " << i << " of " << c.text;
      Program& twice = doubled[victim].program;
      twice.insert(twice.begin() + i, action);
      EXPECT_TRUE(reported(c, doubled)) << "twice action " << i << " of " << c.text;
      if (previous >= 0 && c.program[static_cast<size_t>(previous)] != action) {
        Program& other = swapped[victim].program;
        std::swap(other[static_cast<size_t>(previous)], other[static_cast<size_t>(i)]);
        EXPECT_TRUE(reported(c, swapped))
            << "actions " << previous << " and " << i << " swapped in " << c.text;
      }
      previous = i;
    }
  }
}

TEST(Passes, EveryMutationOfAllRanksIsReported) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    const Case c = random_case(seed);
    for (ptrdiff_t i = 0; i < std::ssize(c.program); ++i) {
      const Action action = c.program[static_cast<size_t>(i)];
      const size_t others = static_cast<size_t>(std::count_if(
          c.program.begin(), c.program.end(),
          [&](const Action& a) { return a.kind == action.kind && a.block != action.block; }));
      Case dropped = c, doubled = c;
      dropped.program.erase(dropped.program.begin() + i);
      doubled.program.insert(doubled.program.begin() + i, action);
      EXPECT_TRUE(reported(doubled, replicas(doubled, 2)))
          << "twice action " << i << " of " << c.text;
      // Where only one block is reduced or refreshed, none or one less can be right as well.
      const bool counted = action.kind == ActionKind::reduce || action.kind == ActionKind::refresh;
      if (others == 0 && counted) continue;
      EXPECT_TRUE(reported(dropped, replicas(dropped, 2)))
          << "without action " << i << " of " << c.text;
    }
  }
}

}  // namespace
}  // namespace rankine
