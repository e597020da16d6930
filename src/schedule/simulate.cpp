#include "schedule/simulate.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/play.h"

namespace rankine {
namespace {

bool takes_processor(ActionKind kind) {
  return computes(kind) || kind == ActionKind::update;
}

struct MemoryChange {
  double time;
  int64_t bytes;
};

void draw_memory(RankTimeline& timeline, std::vector<MemoryChange> changes) {
  // At one time the program's order decides: what ends before an action starts is freed first.
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  timeline.memory.push_back({0, 0});
  for (const MemoryChange& change : changes) {
    const int64_t bytes = timeline.memory.back().bytes + change.bytes;
    timeline.memory.push_back({change.time, bytes});
    timeline.peak_bytes = std::max(timeline.peak_bytes, bytes);
  }
}

RankTimeline timeline_of(int rank, const Program& program, const std::vector<ActionTimes>& times,
                         const CostTable& cost) {
  RankTimeline out;
  std::vector<MemoryChange> changes;
  for (int i = 0; i < static_cast<int>(program.size()); ++i) {
    const Action& action = program[static_cast<size_t>(i)];
    const ActionTimes& at = times[static_cast<size_t>(i)];
    if (action.kind != ActionKind::release)
      (takes_processor(action.kind) ? out.compute : out.communication)
          .push_back({action, i, at.start, at.end});
    const int64_t bytes = cost.memory_change ? cost.memory_change(rank, action) : 0;
    const double taken = takes_processor(action.kind) ? at.start : at.reached;
    if (bytes != 0) changes.push_back({bytes > 0 ? taken : at.end, bytes});
  }
  std::stable_sort(out.communication.begin(), out.communication.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  draw_memory(out, std::move(changes));
  return out;
}

}  // namespace

Simulation simulate(const std::vector<RankProgram>& ranks, const CostTable& cost) {
  const auto times = play(ranks, cost.seconds);
  Simulation out;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    out.ranks.push_back(
        timeline_of(static_cast<int>(rank), ranks[rank].program, times[rank], cost));
    for (const ActionTimes& at : times[rank]) out.seconds = std::max(out.seconds, at.end);
  }
  return out;
}

double Simulation::overlap(int rank) const {
  const RankTimeline& timeline = ranks.at(static_cast<size_t>(rank));
  double communicated = 0, overlapped = 0, counted = 0;  // counted: communication known until there
  auto compute = timeline.compute.begin();
  for (const TimelineEntry& entry : timeline.communication) {
    const double start = std::max(entry.start, counted);
    if (entry.end <= start) continue;
    counted = entry.end;
    communicated += entry.end - start;
    while (compute != timeline.compute.end() && compute->end <= start) ++compute;
    for (auto c = compute; c != timeline.compute.end() && c->start < entry.end; ++c)
      overlapped += std::max(0.0, std::min(c->end, entry.end) - std::max(c->start, start));
  }
  return communicated > 0 ? overlapped / communicated : 1;
}

double Simulation::bubble() const {
  double computed = 0;
  for (const RankTimeline& timeline : ranks)
    for (const TimelineEntry& entry : timeline.compute) computed += entry.end - entry.start;
  const double all = seconds * static_cast<double>(ranks.size());
  return all > 0 ? 1 - computed / all : 0;
}

}  // namespace rankine
