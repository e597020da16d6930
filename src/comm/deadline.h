#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace rankine {

// Calls `missed` on a thread of its own when it lives longer than so many seconds in which this
// process runs; 0: never.
class Deadline {
 public:
  Deadline(double seconds, std::function<void()> missed);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool met_ = false;
  std::thread thread_;
};

}  // namespace rankine
