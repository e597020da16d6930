#pragma once
#include "ops/cpu/kernels/table.h"

namespace rankine::RANKINE_ISA {

// Where a share of so many things ends and the next one begins.
static inline int64_t at_share(int64_t count, double share) {
  return static_cast<int64_t>(static_cast<double>(count) * share + 0.5);
}

// body(part) on each thread of the team.
template <class Body>
static inline void on_team(const TeamCall& team, bool even, const Body& body) {
  team.run(
      team.team, even,
      [](const void* context, TeamPart part) { (*static_cast<const Body*>(context))(part); },
      &body);
}

}  // namespace rankine::RANKINE_ISA
