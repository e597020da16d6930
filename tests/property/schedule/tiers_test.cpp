#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "schedule/play.h"
#include "support/staggered.h"
#include "support/stays.h"

// Copies from and to tiers, for any program: nothing is read before it is there, and no memory is
// taken over before it was copied.
namespace rankine {
namespace {

using test::expect_apart;
using test::share_memory;

struct Case {
  std::vector<BlockTraits> blocks;
  std::vector<ActivationBytes> bytes;
  std::vector<int64_t> parameter_bytes;
  int micros = 1;
  Program program;
  ActivationStays stays;
  std::vector<Stay> gathers;
  std::string text;  // for failures
};

Case random_case(unsigned seed) {
  std::mt19937 rng(seed);
  const auto draw = [&](int count) {
    return static_cast<int>(rng() % static_cast<unsigned>(count));
  };
  Case c;
  c.blocks.resize(static_cast<size_t>(1 + draw(8)));
  for (BlockTraits& block : c.blocks) {
    block.parameter_elements = draw(6) == 0 ? 0 : 1 + draw(100);
    block.splits_backward = draw(4) != 0;
    block.recomputes = draw(3) == 0;
    block.keeps = draw(5) != 0;
    c.bytes.push_back({.input = block.keeps ? 64 * draw(5) : 0,
                       .saved = block.keeps ? 64 * (1 + draw(9)) : 0,
                       .recomputed = 64 * draw(3),
                       .output = 64 * draw(5),
                       .pending = 64 * draw(5)});
    c.parameter_bytes.push_back(64 * block.parameter_elements);
  }
  c.micros = 1 + draw(5);
  const std::vector<StageBlocks> stages{{0, 0, static_cast<int>(c.blocks.size())}};
  c.program = expand_blocks(test::staggered(c.micros, draw(4), draw(4) - 1), stages, c.blocks);
  c.program = add_recomputes(c.program, c.blocks);
  c.program = add_stores(c.program, c.blocks, 1 + draw(4));
  c.program =
      add_gathers(c.program, c.blocks,
                  {.keep = 1 + draw(5), .gathers = draw(2) == 0, .load_ahead = 1 + draw(5)});
  c.stays = activation_stays(c.program, stages, c.bytes);
  for (std::vector<Stay>* stays : {&c.stays.saved, &c.stays.passing, &c.stays.stored})
    place(*stays);
  c.gathers = gather_stays(c.program, c.parameter_bytes);
  place(c.gathers);
  c.text = fmt::format("seed {}: {}", seed, to_string(c.program));
  return c;
}

// Random seconds; copies are slow more often than not.
std::vector<ActionTimes> played(const Case& c, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<double> seconds;
  for (size_t i = 0; i < c.program.size(); ++i) seconds.push_back(rng() % 8);
  const PlacedStays stays{{}, c.stays.passing, c.stays.saved};
  const auto index = [&](const Action& action) {
    return static_cast<size_t>(std::find(c.program.begin(), c.program.end(), action) -
                               c.program.begin());
  };
  return play({{{}, c.program, c.blocks, stays}},
              [&](int, const Action& action) { return seconds[index(action)]; })[0];
}

TEST(TierCopies, AreDoneBeforeTheirMemoryIsUsed) {
  size_t stores = 0, takeovers = 0;
  for (unsigned seed = 0; seed < 3'000; ++seed) {
    const Case c = random_case(seed);
    ASSERT_NO_THROW(check(c.program, c.micros, c.blocks)) << c.text;
    for (const std::vector<Stay>* stays :
         {&c.stays.saved, &c.stays.passing, &c.stays.stored, &c.gathers})
      expect_apart(*stays, c.text);
    const std::vector<ActionTimes> times = played(c, seed);
    const auto at = [&](int index) { return times[static_cast<size_t>(index)]; };
    const auto index = [&](Action action, ActionKind kind) {
      action.kind = kind;
      return static_cast<int>(std::find(c.program.begin(), c.program.end(), action) -
                              c.program.begin());
    };
    for (const Stay& slot : c.stays.stored) {
      ++stores;
      const Action action = c.program[static_cast<size_t>(slot.first)];
      ASSERT_EQ(action.kind, ActionKind::store) << c.text;
      const int fetch = index(action, ActionKind::fetch);
      ASSERT_LE(at(slot.first).end, at(fetch).start) << c.text;
      ASSERT_LE(at(fetch).end, at(slot.last).start) << c.text;
      for (const Stay& stay : c.stays.saved) {
        if (stay.block != slot.block || stay.micro != slot.micro) continue;
        if (stay.kind != StayKind::input && stay.kind != StayKind::saved) continue;
        for (const Stay& after : c.stays.saved)
          if (after.first > stay.last && share_memory(stay, after)) {
            ++takeovers;
            ASSERT_LE(at(slot.first).end, at(after.first).reached) << c.text;
          }
      }
      for (const Stay& after : c.stays.stored) {
        if (after.first <= slot.last || !share_memory(slot, after)) continue;
        ASSERT_LE(at(fetch).end, at(after.first).start) << c.text;
      }
    }
  }
  EXPECT_GT(stores, 1'000u);
  EXPECT_GT(takeovers, 1'000u);
}

// A program that lacks a copy, or has it elsewhere, is refused or ends as well.
TEST(TierCopies, ThatAreLeftOutAreFound) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Case c = random_case(seed);
    for (size_t i = 0; i < c.program.size(); ++i) {
      const ActionKind kind = c.program[i].kind;
      if (kind != ActionKind::load && kind != ActionKind::store && kind != ActionKind::fetch)
        continue;
      Program cut = c.program;
      cut.erase(cut.begin() + static_cast<ptrdiff_t>(i));
      // Without its LOAD a GATHER stands for both, as on the device.
      const bool gathered =
          kind == ActionKind::load &&
          std::find(cut.begin() + static_cast<ptrdiff_t>(i), cut.end(),
                    Action{0, ActionKind::gather, Action::none, c.program[i].block}) != cut.end();
      if (gathered) continue;
      ASSERT_ANY_THROW(check(cut, c.micros, c.blocks)) << i << " of " << c.text;
    }
  }
}

}  // namespace
}  // namespace rankine
