#pragma once
#include <cstdint>

namespace rankine {

// Dynamic loss scaling for f16: starts at 2^16, halves after `hysteresis` steps with a non-finite
// gradient since the last growth, doubles after `window` finite steps in a row, never below 1.
// Without f16 the scale is 1 and never changes.
class LossScale {
 public:
  static constexpr int window = 1000, hysteresis = 2;
  explicit LossScale(bool dynamic) : dynamic_(dynamic), scale_(dynamic ? 65536.0 : 1.0) {}

  double scale() const { return scale_; }
  // Notes how a step went; true when its update must be skipped.
  bool skip_after(bool finite);

  struct State {
    double scale = 1;
    int64_t finite_steps = 0, tolerance = hysteresis;
  };
  State state() const { return {scale_, finite_steps_, tolerance_}; }
  void restore(const State& state);

 private:
  bool dynamic_;
  double scale_;
  int64_t finite_steps_ = 0, tolerance_ = hysteresis;
};

}  // namespace rankine
