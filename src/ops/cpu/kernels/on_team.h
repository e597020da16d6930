#pragma once
#include "ops/cpu/kernels/table.h"

namespace rankine::RANKINE_ISA {

// body(part) on each thread of the team.
template <class Body>
static inline void on_team(const TeamCall& team, bool even, const Body& body) {
  team.run(
      team.team, even,
      [](const void* context, TeamPart part) { (*static_cast<const Body*>(context))(part); },
      &body);
}

}  // namespace rankine::RANKINE_ISA
