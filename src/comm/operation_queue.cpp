#include <chrono>

#include "comm/group.h"

namespace rankine {

bool OperationQueue::Entry::done() {
  const std::lock_guard lock(queue_->mutex_);
  return done_;
}

void OperationQueue::Entry::wait() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(queue_->mutex_);
  const Clock::time_point begin = done_ ? Clock::time_point{} : Clock::now();
  ++queue_->waiting_;
  while (!done_) {
    if (queue_->running_)
      queue_->changed_.wait(lock);
    else
      queue_->drive(lock);
  }
  --queue_->waiting_;
  if (begin != Clock::time_point{})
    queue_->waited_seconds_ =
        queue_->waited_seconds_ + std::chrono::duration<double>(Clock::now() - begin).count();
  if (failure_) std::rethrow_exception(failure_);
}

OperationQueue::~OperationQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Work OperationQueue::start(Run run) {
  auto entry = std::make_shared<Entry>();
  entry->queue_ = this;
  entry->run_ = std::move(run);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(entry);
    if (!thread_.joinable()) thread_ = std::thread([this] { drive_in_background(); });
  }
  changed_.notify_all();
  return Work(std::move(entry));
}

// Runs the front operation with the lock released; the queue must not be running or empty.
void OperationQueue::drive(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Entry> entry = std::move(queue_.front());
  queue_.pop_front();
  running_ = true;
  std::exception_ptr failure = failure_;
  lock.unlock();
  if (!failure) try {
      entry->run_(waiting_);
    } catch (...) {
      failure = std::current_exception();
    }
  entry->run_ = nullptr;
  lock.lock();
  running_ = false;
  entry->done_ = true;
  entry->failure_ = failure_ = failure;
  changed_.notify_all();
}

void OperationQueue::drive_in_background() {
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

}  // namespace rankine
