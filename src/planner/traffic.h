#pragma once
#include <cstdint>

#include "state/zero_plan.h"

// How many elements of gradients and parameters a rank sends over the data axis. Rule: collectives
// are counted at the least any algorithm can send, (N-1)/N of the vector for a reduce_scatter or an
// all_gather and twice that for an all_reduce (section 7 of the ZeRO paper, arXiv 1910.02054).
namespace rankine {

struct Traffic {
  double gradients = 0, parameters = 0;  // elements a rank sends in one optimizer step
  double total() const { return gradients + parameters; }
};

// One optimizer step over `accumulation` micro-batches. Parameters sharded by the plan are gathered
// once for the forward and once for the backward of every micro-batch.
Traffic data_parallel_traffic(int64_t parameters, int64_t data_degree, const ZeroPlan& plan,
                              int64_t accumulation);

}  // namespace rankine
