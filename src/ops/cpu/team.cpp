#include "ops/cpu/team.h"

#include <immintrin.h>

#include <algorithm>

namespace rankine {
namespace {

constexpr int polls = 1000, yields = 200;  // about 20 and 100 us
constexpr int end_of_work = -1;

// Returns when the value is no longer `old`, with the new one. Polls at first, then lets other
// threads run in between, then sleeps. Who stores it does so sequentially consistently, since
// notifying looks afterwards at whether anybody sleeps.
int wait_for_change(const std::atomic<int>& value, int old) {
  for (int i = 0; i < polls; ++i) {
    if (const int now = value.load(std::memory_order_acquire); now != old) return now;
    _mm_pause();
  }
  for (int i = 0; i < yields; ++i) {
    if (const int now = value.load(std::memory_order_acquire); now != old) return now;
    std::this_thread::yield();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

Team::Team(int threads) : slots_(static_cast<size_t>(threads)) {
  for (int t = 0; t <= threads; ++t) bounds_.push_back(static_cast<double>(t) / threads);
  for (int t = 1; t < threads; ++t) threads_.emplace_back([this, t] { serve(t); });
}

Team::~Team() {
  started_.store(end_of_work);
  started_.notify_all();
}

void Team::do_share(int thread) {
  const auto t = static_cast<size_t>(thread);
  const auto count = static_cast<double>(slots_.size());
  work_.body(work_.context, work_.even ? TeamPart{thread, thread / count, (thread + 1) / count}
                                       : TeamPart{thread, bounds_[t], bounds_[t + 1]});
  slots_[t].end = __rdtsc();
}

void Team::serve(int thread) {
  std::atomic<int>& done = slots_[static_cast<size_t>(thread)].done;
  for (int last = 0;;) {
    last = wait_for_change(started_, last);
    if (last == end_of_work) return;
    do_share(thread);
    done.store(last);
    done.notify_one();
  }
}

void Team::run(void* team, bool even, void (*body)(const void* context, TeamPart part),
               const void* context) {
  Team& self = *static_cast<Team*>(team);
  self.work_ = {body, context, even};
  const uint64_t begin = __rdtsc();
  const int number = (self.started_.load(std::memory_order_relaxed) + 1) & 0x7fffffff;
  self.started_.store(number);
  self.started_.notify_all();
  self.do_share(0);
  for (size_t t = 1; t < self.slots_.size(); ++t)
    for (int done = self.slots_[t].done.load(std::memory_order_acquire); done != number;)
      done = wait_for_change(self.slots_[t].done, done);
  if (!even) self.learn(begin);
}

// Moves the bounds a little towards shares that would have ended together. What a thread lost once
// because it was not running says nothing about the next time, and moves them no further than that.
void Team::learn(uint64_t begin) {
  constexpr double most = 1.25, step = 0.1;
  const auto count = static_cast<double>(slots_.size());
  double mean = 0;
  for (const Slot& slot : slots_) mean += static_cast<double>(slot.end - begin) / count;
  std::vector<double>& bounds = bounds_;
  double total = 0, before = 0;
  for (size_t t = 0; t < slots_.size(); ++t) {
    const double share = bounds[t + 1] - before;
    before = bounds[t + 1];
    const double taken = std::max(1.0, static_cast<double>(slots_[t].end - begin));
    const double wanted = share * std::clamp(mean / taken, 1 / most, most);
    total += std::clamp(share + step * (wanted - share), 0.5 / count, 2 / count);
    bounds[t + 1] = total;
  }
  for (double& bound : bounds) bound /= total;
  bounds.back() = 1;
}

}  // namespace rankine
