#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "ops/cpu/kernels/table.h"

namespace rankine {

// Threads for operations that follow each other within microseconds, as those of decoding do. They
// poll for work, so that it begins and ends within a fraction of a microsecond, where OpenMP's
// regions take several. When none comes for half a millisecond, they sleep.
//
// The calling thread is the first of them. Work is divided unevenly: a thread that was late with
// its share gets less of the next, which makes up for processors of which others want a part.
class Team {
 public:
  // Starts the other threads; they inherit the caller's signal mask and control register.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // What kernels call.
  TeamCall call() { return {this, &Team::run, static_cast<int>(slots_.size())}; }
  // Where the shares of the next uneven work begin, and 1.
  const std::vector<double>& bounds() const { return bounds_; }

 private:
  // What a thread is asked for and what it answers, a cache line each: a line on its way from one
  // processor to another takes a good part of the time that small works take.
  struct Slot {
    alignas(64) std::atomic<int> started = 0;  // counts works; negative: no more come
    void (*body)(const void* context, TeamPart part) = nullptr;
    const void* context = nullptr;
    TeamPart part{};
    alignas(64) std::atomic<int> done = 0;  // the last work that this thread has ended
    uint64_t end = 0;                       // when, in ticks
  };
  static void run(void* team, bool even, void (*body)(const void* context, TeamPart part),
                  const void* context);
  void serve(Slot& slot);
  TeamPart part_of(int thread, bool even) const;
  void learn(uint64_t begin);

  std::vector<Slot> slots_;  // the first is the calling thread's
  std::vector<double> bounds_;
  std::vector<std::jthread> threads_;
};

}  // namespace rankine
