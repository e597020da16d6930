#include "tensor/queued/work_queue.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <string>

namespace rankine {
namespace {

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Whether a test leaves this call out.
bool left_out(const char* kind, const std::source_location& site) {
  static const std::string dropped = setting("RANKINE_DROP_MARK"),
                           list = setting("RANKINE_LIST_MARKS");
  if (dropped.empty() && list.empty()) return false;
  const std::string path = site.file_name();
  const std::string name = path.substr(path.rfind('/') + 1) + ":" + std::to_string(site.line());
  if (!list.empty()) {
    static std::mutex mutex;
    static std::set<std::string> seen;
    const std::lock_guard lock(mutex);
    if (seen.insert(name).second) std::ofstream(list, std::ios::app) << name << ' ' << kind << '\n';
  }
  return name == dropped;
}

}  // namespace

class WorkQueue::State {
 public:
  explicit State(uint64_t seed) : random_(seed) {}

  void put(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(work));
      ++put_;
    }
    changed_.notify_all();
  }
  uint64_t last() {
    const std::lock_guard lock(mutex_);
    return put_;
  }
  bool done(uint64_t number) {
    const std::lock_guard lock(mutex_);
    return finished_ >= number;
  }
  void wait(uint64_t number, bool throws) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_ >= number; });
    if (throws && failure_) std::rethrow_exception(failure_);
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      const bool failed = failure_ != nullptr;
      lock.unlock();
      std::exception_ptr failure;
      if (!failed) {
        delay();
        try {
          work();
        } catch (...) {
          failure = std::current_exception();
        }
      }
      work = nullptr;
      lock.lock();
      if (failure) failure_ = failure;
      ++finished_;
      changed_.notify_all();
    }
  }

 private:
  // Now and then, and sometimes long enough for other threads to get far ahead.
  void delay() {
    const uint64_t chance = random_() % 256;
    if (chance < 8) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 400));
    if (chance == 255) std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 4));
  }

  std::mt19937_64 random_;  // the thread's
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  uint64_t put_ = 0, finished_ = 0;
  std::exception_ptr failure_;
  bool stopping_ = false;
};

class WorkQueue::Place final : public Operation {
 public:
  Place(std::shared_ptr<State> state, uint64_t number)
      : state_(std::move(state)), number_(number) {}
  bool done() override { return state_->done(number_); }
  // Late, so that what starts behind a place is not there when nobody waits for it.
  void wait() override {
    state_->wait(number_, true);
    thread_local std::mt19937_64 random{number_};
    if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
  }
  void end() noexcept override { state_->wait(number_, false); }

 private:
  const std::shared_ptr<State> state_;
  const uint64_t number_;
};

WorkQueue::WorkQueue(uint64_t seed, Reach reach)
    : state_(std::make_shared<State>(seed)),
      reach_(std::move(reach)),
      thread_([state = state_] { state->run(); }) {}

WorkQueue::~WorkQueue() {
  state_->stop();
  thread_.join();
}

void WorkQueue::put(std::function<void()> work) {
  state_->put(std::move(work));
}

std::shared_ptr<Operation> WorkQueue::place() {
  return std::make_shared<Place>(state_, state_->last());
}

Mark WorkQueue::mark(const Site& site) {
  return left_out("mark", site) ? Mark() : Mark(place());
}

void WorkQueue::follow(const Mark& mark, const Site& site) {
  if (left_out("follow", site)) return;
  put([mark] { mark.wait(); });
}

void WorkQueue::copy(void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return;
  put([to = reach(to), from = reach(const_cast<void*>(from)), bytes] {
    std::memmove(to, from, bytes);
  });
}

}  // namespace rankine
