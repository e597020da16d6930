#pragma once
#include <algorithm>
#include <chrono>

namespace rankine {

// Judges one wait for another rank.
class SilenceClock {
 public:
  explicit SilenceClock(double limit_seconds) : limit_(limit_seconds) {}  // 0: for ever

  // To be asked again and again. A gap between two questions means that this process slept, not the
  // other one: then the wait begins anew.
  bool lasts_too_long() {
    const Clock::time_point now = Clock::now();
    if (start_ == Clock::time_point{} ||
        std::chrono::duration<double>(now - last_).count() > std::max(1.0, limit_ / 2))
      start_ = now;
    last_ = now;
    return limit_ > 0 && std::chrono::duration<double>(now - start_).count() > limit_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double limit_;
  Clock::time_point start_{}, last_{};
};

}  // namespace rankine
