#include "ops/cpu/team.h"

#include <immintrin.h>

#include <algorithm>

namespace rankine {
namespace {

constexpr int polls = 1000, yields = 1000;  // about 20 and 500 us
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
  for (size_t t = 1; t < slots_.size(); ++t) threads_.emplace_back([this, t] { serve(slots_[t]); });
}

Team::~Team() {
  for (Slot& slot : slots_) {
    slot.started.store(end_of_work);
    slot.started.notify_one();
  }
}

TeamPart Team::part_of(int thread, bool even) const {
  const auto t = static_cast<size_t>(thread);
  const auto count = static_cast<double>(slots_.size());
  return even ? TeamPart{thread, thread / count, (thread + 1) / count}
              : TeamPart{thread, bounds_[t], bounds_[t + 1]};
}

void Team::serve(Slot& slot) {
  for (int last = 0;;) {
    last = wait_for_change(slot.started, last);
    if (last == end_of_work) return;
    slot.body(slot.context, slot.part);
    slot.end = __rdtsc();
    slot.done.store(last);
    slot.done.notify_one();
  }
}

void Team::run(void* team, bool even, void (*body)(const void* context, TeamPart part),
               const void* context) {
  Team& self = *static_cast<Team*>(team);
  std::vector<Slot>& slots = self.slots_;
  const uint64_t begin = __rdtsc();
  for (size_t t = 1; t < slots.size(); ++t) {
    Slot& slot = slots[t];
    slot.body = body;
    slot.context = context;
    slot.part = self.part_of(static_cast<int>(t), even);
    slot.started.store((slot.started.load(std::memory_order_relaxed) + 1) & 0x7fffffff);
    slot.started.notify_one();
  }
  body(context, self.part_of(0, even));
  slots[0].end = __rdtsc();
  for (size_t t = 1; t < slots.size(); ++t) {
    const int number = slots[t].started.load(std::memory_order_relaxed);
    for (int done = slots[t].done.load(std::memory_order_acquire); done != number;)
      done = wait_for_change(slots[t].done, done);
  }
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
