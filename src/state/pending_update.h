#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace rankine {

// One optimizer update at a time in a thread of its own, block by block, beside what the caller
// does meanwhile.
class PendingUpdate {
 public:
  PendingUpdate() = default;
  ~PendingUpdate();  // waits
  PendingUpdate(const PendingUpdate&) = delete;
  PendingUpdate& operator=(const PendingUpdate&) = delete;

  // `update` calls `read(block)` when it needs a block's gradients no more.
  using Read = std::function<void(size_t block)>;
  void start(size_t blocks, std::function<void(const Read& read)> update);
  // Until the block's gradients are needed no more. Throws what went wrong.
  void wait_read(size_t block);
  void finish();  // until all is done; throws what went wrong

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void(const Read&)> update_;  // empty: nothing is under way
  std::vector<bool> read_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rankine
