#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/step_plan.h"
#include "tensor/memory_plan.h"

namespace rankine {

// What comes and goes on the device during a step, by what it is.
enum class Moving : uint8_t {
  parameters,  // gathered
  gradients,   // of a micro-batch, until they have left
  saved,       // activations that a backward needs again
  recomputed,  // activations that are made and not kept, or made again
  passing,     // outputs on their way to the next stage, and gradients of activations
  pending      // between the two halves of a split backward
};
constexpr size_t moving_kinds = 6;
std::string_view name_of(Moving kind);

// Memory of the device over one training step: what is in use within the places that the plan
// keeps. All bytes.
struct MemoryCurve {
  using Bytes = std::array<int64_t, moving_kinds>;
  std::vector<PlanLine> staying;  // by category, largest first: there from start to end
  std::vector<Bytes> moving;      // at each action of the step program
  int64_t reserved = 0;           // for what moves, at any time
  size_t peak = 0;                // the first action at which most is in use

  static int64_t sum(const Bytes& bytes);
  int64_t staying_bytes() const;
};

// `memory` is the plan of the engine that `plan` belongs to.
MemoryCurve memory_curve(const StepPlan& plan, const MemoryPlan& memory);

// The stays at an action, largest first.
std::vector<Stay> stays_at(const StepPlan& plan, size_t action);

}  // namespace rankine
