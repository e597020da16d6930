#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "support/parallel_training.h"

// What pipeline ranks keep of activations follows the schedule: micro-batches in flight times what
// a stage's blocks keep of one.
namespace rankine::test {
namespace {

constexpr MicroShape shape{1, 64};

ModelConfig deep_model() {
  ModelConfig config = tiny_models()[2].config;
  config.layers = 8;
  config.positions = 64;
  return config;
}

const int64_t hidden_bytes = shape.rows() * deep_model().hidden * 4;

// The engine of one pipeline rank as it is planned, with nothing allocated.
struct PlannedRank {
  PlannedRank(const Layout& layout, int micros, int rank)
      : mesh(Mesh::planned(layout.mesh(), rank)),
        ops(make_test_ops(1)),
        step(step_of(layout, micros, mesh)),
        engine(*ops, deep_model(), {.shape = shape, .positions = shape.tokens}, step) {}
  Mesh mesh;
  std::unique_ptr<Ops> ops;
  StepSetup step;
  Engine engine;
};

bool receives_gradient(const Schedule& schedule, int stage) {
  const auto next = static_cast<size_t>(stage) + 1;
  return next < schedule.rank_of_stage.size() &&
         schedule.rank_of_stage[next] != schedule.rank_of_stage[next - 1];
}

// What a rank keeps at most while it runs the schedule's whole stages one after another.
struct Kept {
  int64_t bytes = 0;
  int stages_in_flight = 0;  // of micro-batches, from F to the last backward computation
};

Kept most_kept(const PlannedRank& rank, int pipeline_rank) {
  const auto& blocks = rank.engine.executor().descriptions();
  std::map<int, std::vector<int64_t>> bytes_of;  // of each stage, its blocks'
  std::map<int, bool> has_head;
  for (const StageBlocks& stage : rank.engine.step_plan().stages)
    for (int b = stage.first; b < stage.first + stage.count; ++b) {
      const BlockDescription& block = blocks[static_cast<size_t>(b)];
      bytes_of[stage.stage].push_back(static_cast<int64_t>(total_bytes(block.saved)));
      has_head[stage.stage] = block.name == "head";
    }
  Kept now, most;
  for (const Action& action : rank.step.schedule.ranks[static_cast<size_t>(pipeline_rank)]) {
    if (!computes(action.kind)) continue;
    const std::vector<int64_t>& stage = bytes_of.at(action.stage);
    const int64_t all = std::accumulate(stage.begin(), stage.end(), int64_t{0});
    // The head leaves nothing to W; other stages need the gradient they have received there again.
    const int64_t head = has_head.at(action.stage) ? stage.back() : 0;
    const int64_t gradient = receives_gradient(rank.step.schedule, action.stage) ? hidden_bytes : 0;
    switch (action.kind) {
      case ActionKind::forward:
        now.bytes += all;
        ++now.stages_in_flight;
        break;
      case ActionKind::backward_input:
        now.bytes += gradient - head;
        break;
      case ActionKind::backward_weight:
        now.bytes -= all - head + gradient;
        --now.stages_in_flight;
        break;
      default:
        now.bytes -= all;
        --now.stages_in_flight;
    }
    most.bytes = std::max(most.bytes, now.bytes);
    most.stages_in_flight = std::max(most.stages_in_flight, now.stages_in_flight);
  }
  return most;
}

// Bytes of the stays that are there at the same time.
int64_t most_live(const std::vector<Stay>& stays) {
  std::map<int, int64_t> changes;
  for (const Stay& stay : stays) {
    changes[stay.first] += stay.bytes;
    changes[stay.last + 1] -= stay.bytes;
  }
  int64_t live = 0, most = 0;
  for (const auto& [action, change] : changes) most = std::max(most, live += change);
  return most;
}

int64_t layer_bytes(const PlannedRank& rank) {
  int64_t most = 0;
  for (const BlockDescription& block : rank.engine.executor().descriptions())
    most = std::max(most, static_cast<int64_t>(total_bytes(block.saved)));
  return most;
}

// Micro-batches in flight as the schedules' papers have them.
int in_flight(ScheduleKind schedule, int micros, int ranks, int rank) {
  switch (schedule) {
    case ScheduleKind::gpipe:
      return micros;
    case ScheduleKind::one_forward_one_backward:
      return std::min(micros, ranks - rank);
    case ScheduleKind::interleaved:
      // The warm-up, which changes stages after one micro-batch per rank, and one more.
      return std::min(2 * micros, 2 * (ranks - rank - 1) + std::min(ranks, micros) + 1);
    case ScheduleKind::zero_bubble:
      return std::min(micros, ranks);
    case ScheduleKind::zb_v:
      return std::min(2 * micros, 2 * ranks);
  }
  return 0;
}

class KeptActivations : public ::testing::TestWithParam<ScheduleKind> {};

TEST_P(KeptActivations, AreThoseOfTheMicroBatchesInFlight) {
  const ScheduleKind schedule = GetParam();
  for (const int ranks : {2, 4})
    for (const int micros : {1, 2, 3, 4, 8, 11})
      for (int rank = 0; rank < ranks; ++rank) {
        SCOPED_TRACE(fmt::format("{}, rank {} of {}, {} micro-batches", schedule_name(schedule),
                                 rank, ranks, micros));
        const PlannedRank planned({.pipeline = ranks,
                                   .schedule = schedule,
                                   .virtual_stages = schedule == ScheduleKind::interleaved ? 2 : 1},
                                  micros, rank);
        const Kept kept = most_kept(planned, rank);
        EXPECT_EQ(kept.stages_in_flight, in_flight(schedule, micros, ranks, rank));
        // Besides, inputs and output gradients that arrive ahead of their use, of each stage.
        const StepPlan& plan = planned.engine.step_plan();
        const auto ahead = static_cast<int64_t>(2 * plan.stages.size()) * hidden_bytes;
        const int64_t live = most_live(plan.activations.saved);
        EXPECT_GE(live, kept.bytes);
        EXPECT_LE(live, kept.bytes + ahead);
        // Offsets that are fixed beforehand may leave holes, none larger than a layer.
        EXPECT_GE(plan.saved_bytes, live);
        EXPECT_LE(plan.saved_bytes, live + layer_bytes(planned));
      }
}

INSTANTIATE_TEST_SUITE_P(Schedules, KeptActivations,
                         ::testing::Values(ScheduleKind::gpipe,
                                           ScheduleKind::one_forward_one_backward,
                                           ScheduleKind::interleaved, ScheduleKind::zero_bubble,
                                           ScheduleKind::zb_v),
                         [](const ::testing::TestParamInfo<ScheduleKind>& kind) {
                           std::string name = schedule_name(kind.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace rankine::test
