#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "io/tier_file_engine.h"

namespace rankine {
namespace {

constexpr int threads_of_a_file = 8;

class ThreadEngine : public TierEngine {
 public:
  // Bytes moved, or -errno.
  using Move = std::function<int64_t(const TierPiece&)>;

  ThreadEngine(int threads, Move move) : threads_(threads), move_(std::move(move)) {
    try {
      for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ThreadEngine(const ThreadEngine&) = delete;
  ThreadEngine& operator=(const ThreadEngine&) = delete;
  ~ThreadEngine() override { stop(); }

  std::string_view name() const override { return "threads"; }
  int depth() const override { return threads_; }

  void start(TierPiece& piece) override {
    {
      const std::lock_guard lock(mutex_);
      started_.push_back(&piece);
    }
    work_came_.notify_one();
  }

  Event next() override {
    std::unique_lock lock(mutex_);
    event_came_.wait(lock, [&] { return woken_ || !events_.empty(); });
    if (events_.empty()) {
      woken_ = false;
      return {};
    }
    const Event event = events_.front();
    events_.pop_front();
    return event;
  }

  void wake() override {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    event_came_.notify_one();
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_came_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_came_.wait(lock, [&] { return stopping_ || !started_.empty(); });
      if (started_.empty()) return;
      TierPiece& piece = *started_.front();
      started_.pop_front();
      lock.unlock();
      const int64_t moved = move_(piece);
      lock.lock();
      events_.push_back({&piece, moved});
      event_came_.notify_one();
    }
  }

  int threads_;
  Move move_;
  std::mutex mutex_;
  std::condition_variable work_came_, event_came_;
  std::deque<TierPiece*> started_;
  std::deque<Event> events_;
  bool woken_ = false, stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

std::unique_ptr<TierEngine> make_thread_engine(int descriptor) {
  return std::make_unique<ThreadEngine>(threads_of_a_file, [descriptor](const TierPiece& piece) {
    const auto offset = static_cast<off_t>(piece.offset);
    const ssize_t moved = piece.write ? ::pwrite(descriptor, piece.memory, piece.bytes, offset)
                                      : ::pread(descriptor, piece.memory, piece.bytes, offset);
    return moved < 0 ? int64_t{-errno} : int64_t{moved};
  });
}

std::unique_ptr<TierEngine> make_memory_engine(std::byte* begin) {
  return std::make_unique<ThreadEngine>(1, [begin](const TierPiece& piece) {
    std::byte* const there = begin + piece.offset;
    std::memcpy(piece.write ? there : piece.memory, piece.write ? piece.memory : there,
                piece.bytes);
    return static_cast<int64_t>(piece.bytes);
  });
}

}  // namespace rankine
