#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "io/tier_file_engine.h"
#include "tensor/tier_space.h"

// Requests of any size on their way to a file: cut into pieces, kept in flight by one thread,
// continued where the system moved less than asked for. A request ends when none of its pieces is
// under way any more, also when it failed.
namespace rankine {

class TierQueue;

// Counts what a queue's requests ask for, and how long its owner waits for them.
class TierCounter {
 public:
  TierUse use() const;

 private:
  friend class TierQueue;
  friend class TierRequest;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<uint64_t> bytes_read_ = 0, bytes_written_ = 0;
  std::atomic<std::chrono::nanoseconds> waited_ = {};
};

class TierRequest final : public Operation {
 public:
  explicit TierRequest(std::shared_ptr<TierCounter> counter) : counter_(std::move(counter)) {}
  bool done() override;
  void wait() override;  // throws what went wrong
  void end() noexcept override;

 private:
  friend class TierQueue;
  void finish();
  const std::shared_ptr<TierCounter> counter_;

  // The queue's, under its mutex.
  TierPiece rest_;  // not handed out yet
  int pieces_under_way_ = 0;
  std::exception_ptr failure_;  // also whoever has seen done_

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

class TierQueue {
 public:
  TierQueue(std::unique_ptr<TierEngine> engine, std::filesystem::path path);
  ~TierQueue();  // waits for all requests
  TierQueue(const TierQueue&) = delete;
  TierQueue& operator=(const TierQueue&) = delete;

  std::shared_ptr<TierRequest> start(const TierPiece& whole);
  TierUse use() const { return counter_->use(); }
  std::string_view engine_name() const { return engine_->name(); }

 private:
  struct Slot {
    TierPiece piece;
    std::shared_ptr<TierRequest> request;  // null: free
    int fruitless = 0;                     // interruptions in a row
  };
  void run();
  void fill();
  void settle(const TierEngine::Event& event);
  void release(Slot& slot);
  void drop_rest(const std::shared_ptr<TierRequest>& request, std::exception_ptr failure);
  void abandon(const std::exception_ptr& failure);
  std::exception_ptr error_of(const TierPiece& piece, int64_t result) const;

  std::unique_ptr<TierEngine> engine_;
  std::filesystem::path path_;
  const std::shared_ptr<TierCounter> counter_ = std::make_shared<TierCounter>();
  std::mutex mutex_;
  std::vector<Slot> slots_;
  int used_slots_ = 0;
  std::deque<std::shared_ptr<TierRequest>> waiting_;  // with a rest to hand out
  std::exception_ptr broken_;                         // the engine failed for good
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rankine
