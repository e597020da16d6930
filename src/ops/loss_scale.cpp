#include "ops/loss_scale.h"

#include <algorithm>

namespace rankine {

bool LossScale::skip_after(bool finite) {
  if (!dynamic_) return !finite;
  if (finite) {
    if (++finite_steps_ % window == 0) {
      scale_ *= 2;
      tolerance_ = hysteresis;
    }
    return false;
  }
  finite_steps_ = 0;
  if (--tolerance_ <= 0) {
    scale_ = std::max(1.0, scale_ / 2);
    tolerance_ = 1;
  }
  return true;
}

void LossScale::restore(const State& state) {
  scale_ = state.scale;
  finite_steps_ = state.finite_steps;
  tolerance_ = state.tolerance;
}

}  // namespace rankine
