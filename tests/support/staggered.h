#pragma once
#include <algorithm>

#include "schedule/action.h"

namespace rankine::test {

// Micro-batches in an order a pipeline could ask for: `warm` forwards ahead, and, where `late` is
// not negative, W that many micro-batches behind I.
inline Program staggered(int micros, int warm, int late) {
  const ActionKind backward = late < 0 ? ActionKind::backward : ActionKind::backward_input;
  Program program;
  for (int micro = 0; micro < micros + warm + std::max(late, 0); ++micro) {
    if (micro < micros) program.push_back({0, ActionKind::forward, micro});
    if (micro >= warm && micro < micros + warm) program.push_back({0, backward, micro - warm});
    if (late >= 0 && micro >= warm + late)
      program.push_back({0, ActionKind::backward_weight, micro - warm - late});
  }
  program.push_back({0, ActionKind::update});
  return program;
}

}  // namespace rankine::test
