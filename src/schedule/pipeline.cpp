#include "schedule/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "schedule/v_play.h"

namespace rankine {
namespace {

constexpr std::array<std::string_view, 5> names = {"gpipe", "1f1b", "interleaved", "zero-bubble",
                                                   "zb-v"};

void check_shape(ScheduleKind kind, const PipelineShape& shape) {
  require(
      shape.ranks >= 1 && shape.micros >= 1 && shape.virtual_stages >= 1, ErrorKind::usage,
      "a pipeline of {} ranks, {} micro-batches and {} virtual stages per rank: each must be at "
      "least 1",
      shape.ranks, shape.micros, shape.virtual_stages);
  if (kind == ScheduleKind::interleaved)
    require(shape.virtual_stages >= 2, ErrorKind::usage,
            "schedule interleaved needs at least 2 virtual stages per rank, not {}; raise them or "
            "choose schedule 1f1b",
            shape.virtual_stages);
  else if (kind == ScheduleKind::zb_v)
    require(shape.virtual_stages <= 2, ErrorKind::usage,
            "schedule zb-v has exactly 2 virtual stages per rank, not {}; choose 2, or schedule "
            "interleaved",
            shape.virtual_stages);
  else
    require(shape.virtual_stages == 1, ErrorKind::usage,
            "schedule {} has 1 virtual stage per rank, not {}; choose 1, or schedule interleaved",
            schedule_name(kind), shape.virtual_stages);
}

Program gpipe(int stage, int micros) {
  Program out;
  for (int micro = 0; micro < micros; ++micro) out.push_back({stage, ActionKind::forward, micro});
  for (int micro = 0; micro < micros; ++micro) out.push_back({stage, ActionKind::backward, micro});
  return out;
}

// `split`: I and W instead of B, where stage s puts W off for s micro-batches: as many as it has
// less in flight than the first stage.
Program one_forward_one_backward(int stage, const PipelineShape& shape, bool split) {
  const int warm = std::min(shape.ranks - 1 - stage, shape.micros);
  const int delay = split ? stage : 0;
  Program out;
  for (int micro = 0; micro < warm; ++micro) out.push_back({stage, ActionKind::forward, micro});
  for (int micro = 0; micro < shape.micros + delay; ++micro) {
    const bool backwards = micro < shape.micros;
    if (micro + warm < shape.micros) out.push_back({stage, ActionKind::forward, micro + warm});
    if (backwards)
      out.push_back({stage, split ? ActionKind::backward_input : ActionKind::backward, micro});
    if (split && micro >= delay) out.push_back({stage, ActionKind::backward_weight, micro - delay});
  }
  return out;
}

// Nobody waits for the first stage's I, so where its W follows at once they are one B, which keeps
// no gradients of activations between the two.
Program join_backwards(const Program& program) {
  Program out;
  for (const Action& action : program) {
    const Action before{0, ActionKind::backward_input, action.micro};
    if (action == Action{0, ActionKind::backward_weight, action.micro} && !out.empty() &&
        out.back() == before)
      out.back().kind = ActionKind::backward;
    else
      out.push_back(action);
  }
  return out;
}

// Micro-batches in groups of as many as there are ranks; each stage of the rank in turn takes a
// group. A last group that is not full is planned as if it were and what does not exist is left
// out: that keeps the order of all that is left, and so freedom from deadlock.
Program interleaved(int rank, const PipelineShape& shape) {
  const auto& [ranks, micros, stages] = shape;
  const int full = (micros + ranks - 1) / ranks * ranks * stages;
  Program out;
  const auto add = [&, r = ranks, m = micros, s = stages](int position, ActionKind kind) {
    const int turn = position % (r * s) / r;
    const int micro = position / (r * s) * r + position % r;
    const int stage = (kind == ActionKind::forward ? turn : s - 1 - turn) * r + rank;
    if (micro < m) out.push_back({stage, kind, micro});
  };
  const int warm = std::min(full, 2 * (ranks - 1 - rank) + (stages - 1) * ranks);
  for (int position = 0; position < warm; ++position) add(position, ActionKind::forward);
  for (int position = 0; position < full; ++position) {
    if (position + warm < full) add(position + warm, ActionKind::forward);
    add(position, ActionKind::backward);
  }
  return out;
}

// The best of several plans: by what is known of the seconds.
std::vector<Program> zb_v(const PipelineShape& shape, const ComputationSeconds& seconds) {
  std::vector<VPlay> plays = play_v_in_rounds(shape.ranks, shape.micros, seconds);
  plays.push_back(play_v_greedily(shape.ranks, shape.micros, seconds));
  const auto best =
      std::min_element(plays.begin(), plays.end(),
                       [](const VPlay& a, const VPlay& b) { return a.seconds() < b.seconds(); });
  return best->programs();
}

Program program_of(ScheduleKind kind, const PipelineShape& shape, int rank) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return gpipe(rank, shape.micros);
    case ScheduleKind::interleaved:
      return interleaved(rank, shape);
    default:
      return one_forward_one_backward(rank, shape, kind == ScheduleKind::zero_bubble);
  }
}

}  // namespace

std::vector<std::string> schedule_names() {
  return {names.begin(), names.end()};
}

std::string schedule_name(ScheduleKind kind) {
  return std::string(names.at(static_cast<size_t>(kind)));
}

ScheduleKind parse_schedule_kind(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<ScheduleKind>(found - names.begin());
  const std::vector<std::string> all = schedule_names();
  const std::string nearest = nearest_name(name, all);
  fail(ErrorKind::usage, "schedule '{}' is none of {}{}", name, fmt::join(all, ", "),
       nearest.empty() ? "" : "; did you mean " + nearest + "?");
}

Schedule make_schedule(ScheduleKind kind, const PipelineShape& shape,
                       const ComputationSeconds& seconds) {
  check_shape(kind, shape);
  Schedule out;
  if (kind == ScheduleKind::zb_v) out.ranks = zb_v(shape, seconds);
  const int stages = shape.ranks * (kind == ScheduleKind::zb_v ? 2 : shape.virtual_stages);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    if (kind != ScheduleKind::zb_v) out.ranks.push_back(program_of(kind, shape, rank));
    Program& program = out.ranks[static_cast<size_t>(rank)];
    program = join_backwards(program);
    program.push_back({rank, ActionKind::update});
  }
  for (int stage = 0; stage < stages; ++stage)
    out.rank_of_stage.push_back(kind == ScheduleKind::zb_v && stage >= shape.ranks
                                    ? stages - 1 - stage
                                    : stage % shape.ranks);
  return out;
}

Schedule one_stage(Program program) {
  return {{std::move(program)}, {0}};
}

int micros_of(const Schedule& schedule) {
  int micros = 0;
  for (const Program& program : schedule.ranks)
    for (const Action& action : program) micros = std::max(micros, action.micro + 1);
  return micros;
}

}  // namespace rankine
