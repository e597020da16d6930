#include "schedule/v_play.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {

VPlay::VPlay(int ranks, int micros, const ComputationSeconds& seconds)
    : micros_(micros), seconds_(seconds), ranks_(static_cast<size_t>(ranks)) {
  for (std::vector<double>& ends : ends_)
    ends.assign(ranks_.size() * static_cast<size_t>(micros), never);
}

double VPlay::ready(VWay way, int rank) const {
  const int micro = done(way, rank);
  if (micro == micros_) return never;
  const bool down = way == VWay::forward_down || way == VWay::backward_down;
  const int from = down ? rank - 1 : rank + 1;
  const auto number = static_cast<size_t>(way);
  if (from >= 0 && from < ranks()) return ends_[number][place(from, micro)] + seconds_.transfer;
  return way == VWay::forward_down ? 0 : ends_[number - 1][place(rank, micro)];
}

void VPlay::compute(VWay way, int at) {
  Rank& rank = ranks_[static_cast<size_t>(at)];
  const double start = std::max(rank.clock, ready(way, at));
  expect(start < never, "a computation is planned once its data is");
  const bool forward = goes_forward(way);
  const bool first = way == VWay::forward_down || way == VWay::backward_up;
  Action action{first ? at : 2 * ranks() - 1 - at,
                forward ? ActionKind::forward : ActionKind::backward_input,
                rank.done[static_cast<size_t>(way)]++};
  if (!rank.program.empty()) rank.idle += start - rank.clock;
  rank.clock = start + (forward ? seconds_.forward : seconds_.backward_input);
  ends_[static_cast<size_t>(way)][place(at, action.micro)] = rank.clock;
  rank.program.push_back(action);
  if (forward) {
    ++rank.in_flight;
    return;
  }
  action.kind = ActionKind::backward_weight;
  rank.weights.push_back(action);
}

void VPlay::compute_weight(int at) {
  Rank& rank = ranks_[static_cast<size_t>(at)];
  expect(!rank.weights.empty(), "a W is planned behind its I");
  rank.clock += seconds_.backward_weight;
  rank.program.push_back(rank.weights.front());
  rank.weights.pop_front();
  --rank.in_flight;
}

double VPlay::seconds() const {
  double out = 0;
  for (const Rank& rank : ranks_) out = std::max(out, rank.clock);
  return out;
}

std::vector<Program> VPlay::programs() const {
  std::vector<Program> out;
  for (const Rank& rank : ranks_) out.push_back(rank.program);
  return out;
}

}  // namespace rankine
