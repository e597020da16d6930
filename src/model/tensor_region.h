#pragma once
#include "comm/communicator.h"
#include "model/tensor_split.h"
#include "ops/ops.h"

namespace rankine {

// The border of tensor-parallel work. Outside, every rank has the same rows, or with sequence
// parallelism rows of its own; inside, all rows of what it computes of them. A buffer for all rows
// serves both sides: outside it is own(buffer). enter and leave are each other's backward. With one
// rank nothing happens.
class TensorRegion {
 public:
  TensorRegion() = default;
  // `queue`, of the operations, comes behind what enter and collect bring.
  TensorRegion(const TensorSplit& split, Communicator* ranks, Queue& queue = host_queue())
      : split_(split), ranks_(ranks), queue_(&queue) {}

  const TensorSplit& split() const { return split_; }
  // The rows of a buffer [all rows, width] that this rank has outside.
  Tensor own(const Tensor& all) const;
  // From own rows to all of them.
  void enter(const Tensor& all) const;
  // From everyone's partial sums of all rows to the sums of own rows; a queue has to come behind
  // it.
  Work leave(const Tensor& all) const;
  // out [ranks * n] = everyone's in [n].
  void collect(const Tensor& in, Tensor out) const;

 private:
  TensorSplit split_;
  Communicator* ranks_ = nullptr;
  Queue* queue_ = &host_queue();
};

}  // namespace rankine
