#include "comm/deadline.h"

#include "comm/silence_clock.h"

namespace rankine {

Deadline::Deadline(double seconds, std::function<void()> missed) {
  if (seconds <= 0) return;
  thread_ = std::thread([this, seconds, missed = std::move(missed)] {
    SilenceClock silence(seconds);
    std::unique_lock lock(mutex_);
    while (!silence.lasts_too_long())
      if (changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return met_; })) return;
    missed();
  });
}

Deadline::~Deadline() {
  {
    const std::lock_guard lock(mutex_);
    met_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace rankine
