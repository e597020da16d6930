#pragma once
#include <cstdint>
#include <memory>

#include "tensor/device.h"

// Bytes of a slower tier, copied from and to a faster one while the caller does something else.
namespace rankine {

// The handle of a read or write under way, which waits for it where it ends: memory that outlives
// the handle, and stays untouched meanwhile, outlives the request on every way out of a function. A
// default one is done. It may outlive its space.
class TierWork {
 public:
  TierWork() = default;
  explicit TierWork(std::shared_ptr<Operation> request) : request_(std::move(request)) {}
  TierWork(TierWork&&) noexcept = default;
  TierWork& operator=(TierWork&& other) noexcept {
    end();
    request_ = std::move(other.request_);
    return *this;
  }
  ~TierWork() { end(); }
  bool done() const;
  // Sleeps until it is done and lets go of it. Of a file, Error with path, reason and offset when
  // it failed: {resource} for lack of space, {data} when the file was cut, {environment} for all
  // else.
  void wait();
  // What is put into `queue` from now on comes behind it, which the queue waits for and throws.
  void lead(Queue& queue, const Queue::Site& site = Queue::Site::current());

 private:
  void end() noexcept;  // what went wrong is of no interest

  std::shared_ptr<Operation> request_;
};

// What has gone over so far.
struct TierUse {
  uint64_t bytes_read = 0, bytes_written = 0;
  double exposed_seconds = 0;  // in which the thread that made the space waited for it
  TierUse operator+(const TierUse& o) const {
    return {bytes_read + o.bytes_read, bytes_written + o.bytes_written,
            exposed_seconds + o.exposed_seconds};
  }
  TierUse operator-(const TierUse& o) const {
    return {bytes_read - o.bytes_read, bytes_written - o.bytes_written,
            exposed_seconds - o.exposed_seconds};
  }
};

class TierSpace {
 public:
  virtual ~TierSpace() = default;
  virtual TierUse use() const = 0;
  // Any number may be under way, in any order; one that writes bytes that another one touches must
  // be waited for first. Any thread may call.
  virtual TierWork start_read(uint64_t offset, void* to, uint64_t bytes) = 0;
  virtual TierWork start_write(uint64_t offset, const void* from, uint64_t bytes) = 0;
};

}  // namespace rankine
