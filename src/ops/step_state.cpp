#include "ops/step_state.h"

#include <algorithm>
#include <cmath>

namespace rankine {

double clip_factor(double clip, double norm) {
  return clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0;
}

void decide(const StepRules& rules, const ExactSum& squares, StepState& state) {
  LossScale scale(rules.dynamic_scale);
  scale.restore(state.loss_scale);
  state.used_scale = scale.scale();
  state.grad_norm = std::sqrt(squares.value()) / state.used_scale;
  state.skipped = scale.skip_after(std::isfinite(state.grad_norm)) ? 1 : 0;
  state.loss_scale = scale.state();
  if (state.skipped != 0) return;
  ++state.updates;
  const auto t = static_cast<double>(state.updates);
  state.gradient_scale =
      static_cast<float>(clip_factor(rules.clip_grad, state.grad_norm) / state.used_scale);
  state.bias_correction1 = static_cast<float>(1 - std::pow(rules.beta1, t));
  state.bias_correction2 = static_cast<float>(1 - std::pow(rules.beta2, t));
}

}  // namespace rankine
