#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "schedule/pipeline.h"
#include "schedule/simulate.h"
#include "support/stays.h"

// From schedules through every pass to placed memory, as a training step is made.
namespace rankine {
namespace {

using test::expect_apart;
using test::share_memory;

struct RankCase {
  std::vector<StageBlocks> stages;
  std::vector<BlockTraits> blocks;
  std::vector<ActivationBytes> activations;
  Program program;
  std::vector<Stay> saved;
};

struct Case {
  PipelineShape shape;
  Schedule schedule;
  std::vector<RankCase> ranks;
  std::vector<RankProgram> programs;  // of two data replicas
  std::string text;
};

RankCase random_rank(std::mt19937& rng, const Schedule& schedule, int rank) {
  RankCase out;
  const int last_stage = static_cast<int>(schedule.rank_of_stage.size()) - 1;
  for (int stage = 0; stage <= last_stage; ++stage) {
    if (schedule.rank_of_stage[static_cast<size_t>(stage)] != rank) continue;
    const int count = 1 + static_cast<int>(rng() % 3);
    out.stages.push_back({stage, static_cast<int>(out.blocks.size()), count});
    for (int i = 0; i < count; ++i) {
      out.blocks.push_back({.parameter_elements = static_cast<int64_t>(rng() % 100),
                            .backward_reads_parameters = rng() % 3 != 0});
      const auto bytes = [&] { return static_cast<int64_t>(rng() % 5 * 32); };
      out.activations.push_back({bytes(), bytes(), bytes(), bytes()});
    }
    if (stage == last_stage) {
      BlockTraits& head = out.blocks.back();
      head.forward_reads_parameters = false;
      head.splits_backward = false;
      if (out.stages.front().stage == 0 && out.blocks.size() > 1) head.tied = 0;
    }
  }
  return out;
}

Case random_case(unsigned seed) {
  std::mt19937 rng(seed);
  Case c;
  const auto kind = static_cast<ScheduleKind>(rng() % 5);
  c.shape = {1 + static_cast<int>(rng() % 6), 1 + static_cast<int>(rng() % 9)};
  if (kind == ScheduleKind::interleaved) c.shape.virtual_stages = 2 + static_cast<int>(rng() % 2);
  c.schedule = make_schedule(kind, c.shape);
  const bool gathers = rng() % 2 == 0;
  const ReducePlan reduce = {.every_micro = rng() % 2 == 0,
                             .bucket_elements = static_cast<int64_t>(rng() % 200)};
  const int keep = 1 + static_cast<int>(rng() % 6), linger = static_cast<int>(rng() % 5);
  const int stored_ahead = static_cast<int>(rng() % 4);  // 0: nothing is stored
  for (int rank = 0; rank < c.shape.ranks; ++rank) {
    RankCase r = random_rank(rng, c.schedule, rank);
    r.program = expand_blocks(c.schedule.ranks[static_cast<size_t>(rank)], r.stages, r.blocks);
    r.program = add_transfers(r.program, c.schedule, rank);
    if (stored_ahead > 0) r.program = add_stores(r.program, r.blocks, stored_ahead);
    r.program = add_reduces(r.program, r.blocks, reduce);
    r.program = gathers ? add_gathers(r.program, r.blocks, {.keep = keep})
                        : add_refreshes(r.program, r.blocks);
    ActivationStays stays = activation_stays(r.program, r.stages, r.activations);
    place(stays.saved);
    place(stays.passing);
    r.saved = stays.saved;
    std::vector<int64_t> bytes;
    for (const BlockTraits& block : r.blocks) bytes.push_back(4 * block.parameter_elements);
    std::vector<Stay> gradients = gradient_stays(r.program, r.blocks, bytes, linger);
    place(gradients);
    for (int data = 0; data < 2; ++data)
      c.programs.push_back({.place = {.pipeline = rank, .data = data},
                            .program = r.program,
                            .blocks = r.blocks,
                            .stays = {gradients, stays.passing, stays.saved}});
    c.text += fmt::format("\nrank {}: {}", rank, to_string(r.program));
    c.ranks.push_back(std::move(r));
  }
  c.text = fmt::format("seed {}: {}{}", seed, schedule_name(kind), c.text);
  return c;
}

TEST(Chain, ProgramsCheckAndEndWithTheMemoryTheyShare) {
  for (unsigned seed = 0; seed < 5'000; ++seed) {
    const Case c = random_case(seed);
    for (const RankCase& rank : c.ranks) {
      ASSERT_NO_THROW(check(rank.program, c.shape.micros, rank.blocks)) << c.text;
      ASSERT_EQ(stage_blocks(rank.program), rank.stages) << c.text;
    }
    ASSERT_NO_THROW(check_completes(c.programs)) << c.text;
  }
}

// Two buffers for what is sent are enough, whatever the shape and the seconds.
TEST(Chain, LargePipelinesEndWithTwoBuffers) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 rng(seed);
    const auto draw = [&](int count) {
      return 1 + static_cast<int>(rng() % static_cast<unsigned>(count));
    };
    const auto kind = static_cast<ScheduleKind>(rng() % 5);
    PipelineShape shape{draw(16), draw(64)};
    if (kind == ScheduleKind::interleaved) shape.virtual_stages = 1 + draw(3);
    const ComputationSeconds seconds = {draw(20) / 10.0, draw(20) / 10.0, draw(20) / 10.0,
                                        (draw(10) - 1) / 10.0};
    const Schedule schedule = make_schedule(kind, shape, seconds);
    std::vector<RankProgram> programs;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      std::vector<StageBlocks> stages;
      for (int stage = 0; stage < static_cast<int>(schedule.rank_of_stage.size()); ++stage)
        if (schedule.rank_of_stage[static_cast<size_t>(stage)] == rank)
          stages.push_back({stage, static_cast<int>(stages.size()), 1});
      const std::vector<BlockTraits> blocks(stages.size());
      const std::vector<ActivationBytes> bytes(
          stages.size(), {.input = 64, .saved = 64, .output = 64, .pending = 64});
      RankProgram out{.place = {.pipeline = rank}, .program = {}, .blocks = blocks};
      out.program = add_transfers(
          expand_blocks(schedule.ranks[static_cast<size_t>(rank)], stages, blocks), schedule, rank);
      out.stays.passing = activation_stays(out.program, stages, bytes).passing;
      place(out.stays.passing);
      programs.push_back(std::move(out));
    }
    ASSERT_NO_THROW(check_completes(programs))
        << "seed " << seed << ": " << schedule_name(kind) << ", " << shape.ranks << " ranks, "
        << shape.micros << " micro-batches, " << shape.virtual_stages << " stages per rank";
  }
}

TEST(Chain, StaysNeverShareTimeAndMemory) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Case c = random_case(seed);
    for (size_t rank = 0; rank < c.ranks.size(); ++rank) {
      expect_apart(c.ranks[rank].saved, c.text);
      expect_apart(c.programs[2 * rank].stays.gradients, c.text);
      expect_apart(c.programs[2 * rank].stays.passing, c.text);
    }
  }
}

// What an action reads and writes, told once more, action by action.
class Needs {
 public:
  Needs(const Case& c, size_t rank) : case_(c), rank_(c.ranks[rank]) {}

  struct Need {
    StayKind kind;
    int block;
    int64_t bytes;
  };
  std::vector<Need> of(const Action& action) const {
    const auto stage = std::find_if(rank_.stages.begin(), rank_.stages.end(),
                                    [&](const StageBlocks& s) { return s.stage == action.stage; });
    const int first = stage->first, last = stage->first + stage->count - 1, b = action.block;
    std::vector<Need> out;
    switch (action.kind) {
      case ActionKind::forward:
        out = {need(StayKind::saved, b)};
        if (!starts_model(b)) out.push_back(need(StayKind::input, b));
        if (hands_on(action, last))
          out.push_back(need(StayKind::input, b + 1));
        else if (action.stage < last_stage())
          out.push_back(need(StayKind::output, b));
        break;
      case ActionKind::backward:
      case ActionKind::backward_input:
      case ActionKind::backward_weight:
        out = {need(StayKind::saved, b), need(StayKind::pending, b)};
        if (!starts_model(b)) out.push_back(need(StayKind::input, b));
        if (!starts_model(b) && action.kind != ActionKind::backward_weight)
          out.push_back(need(StayKind::input_gradient, b));
        if (hands_on(action, last))
          out.push_back(need(StayKind::input_gradient, b + 1));
        else if (action.stage < last_stage())
          out.push_back(need(StayKind::output_gradient, b));
        break;
      case ActionKind::store:
      case ActionKind::fetch:
        out = {need(StayKind::saved, b)};
        if (!starts_model(b)) out.push_back(need(StayKind::input, b));
        break;
      case ActionKind::send_activation:
        out = {need(StayKind::output, last)};
        break;
      case ActionKind::receive_activation:
        out = {need(StayKind::input, first)};
        break;
      case ActionKind::send_gradient:
        out = {need(StayKind::input_gradient, first)};
        break;
      case ActionKind::receive_gradient:
        out = {need(StayKind::output_gradient, last)};
        break;
      default:
        break;
    }
    return out;
  }

 private:
  int last_stage() const { return static_cast<int>(case_.schedule.rank_of_stage.size()) - 1; }
  bool starts_model(int block) const { return rank_.stages.front().stage == 0 && block == 0; }
  // Whether the block after this one is on this rank and follows it in the model.
  bool hands_on(const Action& action, int last) const {
    if (action.block < last) return true;
    return action.stage < last_stage() &&
           case_.schedule.rank_of_stage[static_cast<size_t>(action.stage)] ==
               case_.schedule.rank_of_stage[static_cast<size_t>(action.stage) + 1];
  }
  Need need(StayKind kind, int block) const {
    const ActivationBytes& bytes = rank_.activations[static_cast<size_t>(block)];
    const bool input = kind == StayKind::input || kind == StayKind::input_gradient;
    return {kind, block,
            input                       ? bytes.input
            : kind == StayKind::saved   ? bytes.saved
            : kind == StayKind::pending ? bytes.pending
                                        : bytes.output};
  }

  const Case& case_;
  const RankCase& rank_;
};

// What comes back from a tier is what it was.
StayKind kind_here(const Stay& stay) {
  return stay.kind == StayKind::input_again   ? StayKind::input
         : stay.kind == StayKind::saved_again ? StayKind::saved
                                              : stay.kind;
}

TEST(Chain, EveryActionFindsItsActivations) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Case c = random_case(seed);
    for (size_t rank = 0; rank < c.ranks.size(); ++rank) {
      std::vector<Stay> stays = c.ranks[rank].saved;
      const std::vector<Stay>& passing = c.programs[2 * rank].stays.passing;
      stays.insert(stays.end(), passing.begin(), passing.end());
      const Program& program = c.ranks[rank].program;
      for (int i = 0; i < static_cast<int>(program.size()); ++i) {
        const Action& action = program[static_cast<size_t>(i)];
        for (const auto& [kind, block, bytes] : Needs(c, rank).of(action)) {
          const auto held = std::count_if(stays.begin(), stays.end(), [&](const Stay& stay) {
            return kind_here(stay) == kind && stay.block == block && stay.micro == action.micro &&
                   stay.bytes == bytes && stay.first <= i && i <= stay.last;
          });
          ASSERT_EQ(held, bytes > 0 ? 1 : 0)
              << "kind " << static_cast<int>(kind) << " of block " << block << " at action " << i
              << " (" << to_string(action) << ") of rank " << rank << " of " << c.text;
        }
      }
    }
  }
}

// Plays the programs and looks at what really ran: whoever takes memory over finds it sent.
TEST(Chain, MemoryIsTakenOverOnlyOnceSent) {
  int takeovers = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Case c = random_case(seed);
    const CostTable cost{
        .seconds = [&](int,
                       const Action& action) { return computes(action.kind) ? 1.0 : seed % 9; },
        .memory_change = {}};
    const Simulation played = simulate(c.programs, cost);
    for (size_t r = 0; r < c.programs.size(); r += 2) {
      const RankProgram& rank = c.programs[r];
      std::vector<TimelineEntry> ran(rank.program.size());
      for (const auto* entries : {&played.ranks[r].compute, &played.ranks[r].communication})
        for (const TimelineEntry& entry : *entries) ran[static_cast<size_t>(entry.index)] = entry;
      for (const Stay& before : rank.stays.passing) {
        const bool output = before.kind == StayKind::output;
        if (!output && before.kind != StayKind::input_gradient) continue;
        const Action send{rank.program[static_cast<size_t>(before.first)].stage,
                          output ? ActionKind::send_activation : ActionKind::send_gradient,
                          before.micro};
        const auto sent = std::find(rank.program.begin() + before.first,
                                    rank.program.begin() + before.last + 1, send);
        if (sent == rank.program.begin() + before.last + 1) continue;
        const double end = ran[static_cast<size_t>(sent - rank.program.begin())].end;
        for (const Stay& after : rank.stays.passing) {
          if (after.first <= before.last || !share_memory(before, after)) continue;
          ASSERT_LE(end, ran[static_cast<size_t>(after.first)].start)
              << "action " << after.first << " of rank " << r / 2 << " of " << c.text;
          ++takeovers;
        }
      }
    }
  }
  EXPECT_GT(takeovers, 1000);
}

// One rank of the two replicas of a stage that differs in any communication is reported.
TEST(Chain, EveryMutationOfCommunicationIsReported) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Case c = random_case(seed);
    const size_t victim = seed % c.programs.size();
    const Program& good = c.programs[victim].program;
    for (size_t i = 0; i < good.size(); ++i) {
      if (computes(good[i].kind) || good[i].kind == ActionKind::update) continue;
      for (const bool twice : {false, true}) {
        std::vector<RankProgram> mutated = c.programs;
        mutated[victim].stays = {};
        Program& program = mutated[victim].program;
        const auto at = program.begin() + static_cast<ptrdiff_t>(i);
        twice ? program.insert(at, good[i]) : program.erase(at);
        EXPECT_THROW(
            {
              check(program, c.shape.micros, mutated[victim].blocks);
              check_completes(mutated);
            },
            Error)
            << (twice ? "twice" : "without") << " action " << i << " (" << to_string(good[i])
            << ") of program " << victim << " of " << c.text;
      }
    }
  }
}

}  // namespace
}  // namespace rankine
