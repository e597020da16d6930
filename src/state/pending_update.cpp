#include "state/pending_update.h"

#include "base/error.h"

namespace rankine {

PendingUpdate::~PendingUpdate() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PendingUpdate::start(size_t blocks, std::function<void(const Read&)> update) {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  {
    const std::lock_guard lock(mutex_);
    expect(!update_, "one update is under way at a time");
    update_ = std::move(update);
    read_.assign(blocks, false);
  }
  changed_.notify_all();
}

void PendingUpdate::wait_read(size_t block) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !update_ || read_[block]; });
  if (failure_) std::rethrow_exception(failure_);
}

void PendingUpdate::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !update_; });
  if (failure_) std::rethrow_exception(failure_);
}

void PendingUpdate::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || update_; });
    if (!update_) return;
    lock.unlock();
    std::exception_ptr failure;
    try {
      update_([this](size_t block) {
        {
          const std::lock_guard inner(mutex_);
          read_[block] = true;
        }
        changed_.notify_all();
      });
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    update_ = nullptr;
    failure_ = failure;
    changed_.notify_all();
  }
}

}  // namespace rankine
