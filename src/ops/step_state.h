#pragma once
#include <cstdint>
#include <type_traits>

#include "base/exact_sum.h"
#include "ops/loss_scale.h"

// What a step decides from its gradients, in the memory in which the optimizer works, so that the
// host need not read it within the step.
namespace rankine {

struct StepRules {
  bool dynamic_scale = false;  // f16
  double clip_grad = 0;        // largest gradient norm, 0: no clipping
  double beta1 = 0.9, beta2 = 0.95;
};

struct StepState {
  // Goes on from step to step.
  LossScale::State loss_scale;
  int64_t updates = 0;  // optimizer steps really made
  // Of the newest step.
  double grad_norm = 0;      // of the unscaled gradient, before clipping
  double used_scale = 1;     // of its loss
  int64_t skipped = 0;       // 1: its gradient was not finite, and nothing is to change
  float gradient_scale = 1;  // unscaling and clipping
  float bias_correction1 = 1, bias_correction2 = 1;  // 1 - beta^updates
};
static_assert(std::is_trivially_copyable_v<StepState>);

// From the exact sum of the squares of the scaled gradient over all ranks; the same on every
// device.
void decide(const StepRules& rules, const ExactSum& squares, StepState& state);

// min(1, clip / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ has it; 1 when clip is 0.
double clip_factor(double clip, double norm);

}  // namespace rankine
