#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "ops/cpu/kernels/table.h"

namespace rankine {

// Threads for operations that follow each other within microseconds, as those of decoding do. They
// poll for work, so that it begins and ends within a fraction of a microsecond, where OpenMP's
// regions take several; when none comes for about a tenth of a millisecond, they sleep.
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
  struct alignas(64) Slot {
    std::atomic<int> done = 0;  // the last work that this thread has ended
    uint64_t end = 0;           // when, in ticks
  };
  struct Work {
    void (*body)(const void* context, TeamPart part);
    const void* context;
    bool even;
  };
  static void run(void* team, bool even, void (*body)(const void* context, TeamPart part),
                  const void* context);
  void serve(int thread);
  void do_share(int thread);
  void learn(uint64_t begin);

  std::vector<Slot> slots_;
  std::vector<double> bounds_;
  Work work_{};
  alignas(64) std::atomic<int> started_ = 0;  // counts works; negative: no more come
  std::vector<std::jthread> threads_;
};

}  // namespace rankine
