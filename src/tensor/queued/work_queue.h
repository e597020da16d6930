#pragma once
#include <functional>
#include <thread>

#include "tensor/device.h"

namespace rankine {

// Work that a thread of its own does in order, with random delays between: the queue of a simulated
// device. Tests of the marks themselves leave one out, RANKINE_DROP_MARK=<file>:<line> of its call,
// and list those that come by, RANKINE_LIST_MARKS=<file>. After a failure nothing more is done, and
// whoever waits for a later place gets it thrown.
class WorkQueue final : public Queue {
 public:
  using Reach = std::function<void*(void*)>;
  // `seed` chooses the delays; `reach` says where the thread finds memory.
  WorkQueue(uint64_t seed, Reach reach);
  ~WorkQueue() override;  // works off what is there
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void put(std::function<void()> work);
  std::shared_ptr<Operation> place();  // behind everything put in so far
  Mark mark(const Site& site = Site::current()) override;
  void follow(const Mark& mark, const Site& site = Site::current()) override;
  void copy(void* to, const void* from, uint64_t bytes) override;
  void* reach(void* memory) const override { return reach_(memory); }

 private:
  class State;
  class Place;
  const std::shared_ptr<State> state_;  // marks may stay longer
  Reach reach_;
  std::thread thread_;
};

}  // namespace rankine
