#pragma once
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>

#include "tensor/tensor.h"

// Whose memory it is and in which order it is worked on. What is put into a queue runs in order;
// what is started elsewhere runs behind a mark. The host waits only where it reads.
namespace rankine {

class TierSpace;

// Something that is under way; memory it was given must live and stay untouched until it is done.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual bool done() = 0;
  virtual void wait() = 0;  // drives it in the calling thread; throws what went wrong
  // Returns when it no longer touches its memory. While the calling thread unwinds because of an
  // exception the operation is given up, and all later ones of its queue fail; otherwise it is
  // waited for, and what goes wrong shows in the next one.
  virtual void end() noexcept = 0;
};

// A place in the order of work. A default one has passed.
class Mark {
 public:
  Mark() = default;
  explicit Mark(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  bool passed() const { return !operation_ || operation_->done(); }
  // The calling thread sleeps until then; throws what went wrong before it.
  void wait() const {
    if (operation_) operation_->wait();
  }

 private:
  std::shared_ptr<Operation> operation_;
};

// Work in order. One thread puts it in.
class Queue {
 public:
  virtual ~Queue() = default;
  // Where it is called from, by which tests of a simulated device tell the calls apart.
  using Site = std::source_location;
  virtual Mark mark(const Site& site = Site::current()) = 0;  // behind everything put in so far
  virtual void follow(
      const Mark& mark,
      const Site& site = Site::current()) = 0;  // what is put in from now on comes behind it
  // Copies bytes; each side is memory of the device or of reserve_host().
  virtual void copy(void* to, const void* from, uint64_t bytes) = 0;
  // Where the host's threads that carry messages reach memory of the device, once a mark behind its
  // work has passed; other memory is where it is.
  virtual void* reach(void* memory) const { return memory; }
};

// The queue of a processor: the calling thread. What was put in is done, every mark has passed, and
// following is waiting.
Queue& host_queue();

// Memory of a device, zero at first, given back at the end.
class MemoryBlock {
 public:
  virtual ~MemoryBlock() = default;
  virtual void* data() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual std::string description() const = 0;
  // Its own memory, and memory of the host that its copies reach at full speed. Error{resource}.
  virtual std::unique_ptr<MemoryBlock> reserve(uint64_t bytes) = 0;
  virtual std::unique_ptr<MemoryBlock> reserve_host(uint64_t bytes) = 0;
  // A tier's space whose requests may name memory of this device too. `after`, the queue whose
  // work so far every request starts behind, outlives it.
  virtual std::unique_ptr<TierSpace> reach(std::unique_ptr<TierSpace> space, Queue& after) = 0;
  // Whether the host reads its memory as its own.
  bool is_host() const { return kind() == DeviceKind::cpu; }
};

// The processor and its memory: a device whose own memory is the host's.
Device& host_device();

}  // namespace rankine
