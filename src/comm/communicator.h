#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "tensor/device.h"

// The ranks of one axis. Operations are ordered per group, as on a stream: a call returns when its
// operation is enqueued, and the handle says when it is done. Size 1 is the identity.
namespace rankine {

enum class Reduction : uint8_t { sum, max };

// The handle of an operation, which ends with it: memory that outlives the handle outlives the
// operation, on every way out of a function. A default one is done.
class Work {
 public:
  Work() = default;
  explicit Work(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  Work(Work&&) noexcept = default;
  Work& operator=(Work&& other) noexcept {
    end();
    operation_ = std::move(other.operation_);
    return *this;
  }
  ~Work() { end(); }
  bool done() const { return !operation_ || operation_->done(); }
  bool empty() const { return !operation_; }  // nothing is to be waited for, at any time
  // Waits and lets go of the operation. Error{environment} names the rank that was waited for.
  void wait() {
    if (const auto operation = std::move(operation_)) operation->wait();
  }
  // What is put into `queue` from now on comes behind it, which the queue waits for and throws.
  void lead(Queue& queue, const Queue::Site& site = Queue::Site::current()) {
    if (auto operation = std::move(operation_)) queue.follow(Mark(std::move(operation)), site);
  }

 private:
  void end() noexcept {
    if (const auto operation = std::move(operation_)) operation->end();
  }

  std::shared_ptr<Operation> operation_;
};

// Sums follow one balanced binary tree over the ranks of the group in order, whatever the sizes and
// the timing; bf16 and f16 are summed in f32 and rounded once. All ranks of a group must call the
// same operations with the same sizes in the same order; `tag` names one for people, and a mismatch
// is an error on all sides.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // x becomes the reduction over the ranks.
  virtual Work all_reduce(Tensor x, Reduction reduction, std::string_view tag) = 0;
  // out [n] = this rank's part of the sum of everyone's in [size * n]; `out` may be that part of
  // in.
  virtual Work reduce_scatter(const Tensor& in, Tensor out, std::string_view tag) = 0;
  // out [size * n] = everyone's in [n], in order; `in` may be this rank's part of out.
  virtual Work all_gather(const Tensor& in, Tensor out, std::string_view tag) = 0;
  // x becomes the root's x.
  virtual Work broadcast(Tensor x, int root, std::string_view tag) = 0;
  // One rank to another; ordered per pair, independent of the collectives.
  virtual Work send(const Tensor& x, int peer, std::string_view tag) = 0;
  virtual Work receive(Tensor x, int peer, std::string_view tag) = 0;
  virtual Work barrier(std::string_view tag) = 0;

  // From now on every operation starts behind what was put into `queue` before it, and its tensors
  // are where the queue's device has them; the queue outlives the operations. Before, operations
  // start at once.
  virtual void start_behind(Queue& queue) = 0;

  // Bytes of tensors that the operations started so far send from this rank.
  virtual uint64_t bytes_sent() const = 0;
  // Seconds that callers have spent waiting for its operations.
  virtual double waited_seconds() const { return 0; }
};

}  // namespace rankine
