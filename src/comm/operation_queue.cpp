#include <chrono>
#include <exception>

#include "base/error.h"
#include "comm/group.h"

namespace rankine {

class OperationQueue::State {
 public:
  void add(std::shared_ptr<Entry> entry);
  bool done(const Entry& entry);
  void wait(Entry& entry);  // throws what went wrong
  void end(Entry& entry);
  void drive_in_background();
  void stop();   // the background thread ends
  void clear();  // afterwards nothing runs or waits
  double waited_seconds() const { return waited_seconds_; }

 private:
  void wait_until_done(Entry& entry, std::unique_lock<std::mutex>& lock);
  void drive(std::unique_lock<std::mutex>& lock);
  void give_up_when_unwinding();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Entry>> queue_;
  Watch watch_;
  std::atomic<double> waited_seconds_{0};
  bool running_ = false, stopping_ = false;
  std::exception_ptr failure_;  // of an earlier operation: all later ones fail too
};

class OperationQueue::Entry final : public Operation {
 public:
  Entry(std::shared_ptr<State> state, Run run) : state_(std::move(state)), run_(std::move(run)) {}
  bool done() override { return state_->done(*this); }
  void wait() override { state_->wait(*this); }
  void end() noexcept override { state_->end(*this); }

 private:
  friend class State;
  const std::shared_ptr<State> state_;
  Run run_;
  bool done_ = false;
  std::exception_ptr failure_;
};

void OperationQueue::State::add(std::shared_ptr<Entry> entry) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(entry));
  }
  changed_.notify_all();
}

bool OperationQueue::State::done(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  return entry.done_;
}

void OperationQueue::State::wait_until_done(Entry& entry, std::unique_lock<std::mutex>& lock) {
  ++watch_.waiting;
  while (!entry.done_) {
    if (running_)
      changed_.wait(lock);
    else
      drive(lock);
  }
  --watch_.waiting;
}

void OperationQueue::State::wait(Entry& entry) {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  const Clock::time_point begin = entry.done_ ? Clock::time_point{} : Clock::now();
  wait_until_done(entry, lock);
  if (begin != Clock::time_point{})
    waited_seconds_ = waited_seconds_ + std::chrono::duration<double>(Clock::now() - begin).count();
  if (entry.failure_) std::rethrow_exception(entry.failure_);
}

// Nobody will do this rank's part any more, so that peers would be waited for in vain.
void OperationQueue::State::give_up_when_unwinding() {
  if (std::uncaught_exceptions() == 0) return;
  watch_.given_up = true;
  if (!failure_)
    failure_ = std::make_exception_ptr(
        Error(ErrorKind::environment, "an operation between ranks was given up after a failure"));
}

void OperationQueue::State::end(Entry& entry) {
  std::unique_lock lock(mutex_);
  if (entry.done_) return;
  give_up_when_unwinding();
  wait_until_done(entry, lock);
}

// Runs the front operation with the lock released; the queue must not be running or empty.
void OperationQueue::State::drive(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Entry> entry = std::move(queue_.front());
  queue_.pop_front();
  running_ = true;
  std::exception_ptr failure = failure_;
  lock.unlock();
  if (!failure) try {
      entry->run_(watch_);
    } catch (...) {
      failure = std::current_exception();
    }
  entry->run_ = nullptr;
  lock.lock();
  running_ = false;
  entry->done_ = true;
  if (!failure_) failure_ = failure;
  entry->failure_ = failure;
  changed_.notify_all();
}

void OperationQueue::State::drive_in_background() {
  std::unique_lock lock(mutex_);
  const auto idle = [&] { return queue_.empty() || running_; };
  while (!stopping_) {
    if (idle()) {
      changed_.wait(lock);
      continue;
    }
    // Whoever started it may wait for it at once, and is faster without a change of threads.
    if (!changed_.wait_for(lock, std::chrono::microseconds(100),
                           [&] { return stopping_ || idle(); }))
      drive(lock);
  }
}

void OperationQueue::State::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    give_up_when_unwinding();
  }
  changed_.notify_all();
}

void OperationQueue::State::clear() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !running_; });
  if (!queue_.empty() && !failure_)
    failure_ = std::make_exception_ptr(
        Error(ErrorKind::internal, "an operation had not begun when its group went"));
  while (!queue_.empty()) drive(lock);
}

OperationQueue::OperationQueue() : state_(std::make_shared<State>()) {}

OperationQueue::~OperationQueue() {
  state_->stop();
  if (thread_.joinable()) thread_.join();
  state_->clear();
}

Work OperationQueue::start(Run run) {
  auto entry = std::make_shared<Entry>(state_, std::move(run));
  // Before it is queued: when there is no thread to be had, nothing has begun.
  if (!thread_.joinable())
    thread_ = std::thread([state = state_] { state->drive_in_background(); });
  state_->add(entry);
  return Work(std::move(entry));
}

double OperationQueue::waited_seconds() const {
  return state_->waited_seconds();
}

}  // namespace rankine
