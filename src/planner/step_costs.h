#pragma once
#include <span>

#include "model/block.h"
#include "schedule/passes.h"
#include "schedule/simulate.h"
#include "state/zero_plan.h"

// What the actions of a step program cost on given hardware, for the simulator: from the flops that
// blocks describe and the bytes that collectives send.
namespace rankine {

struct HardwareRates {
  double flops = 0;         // of one rank's products, per second
  double bytes_sent = 0;    // by one rank, per second
  double memory_bytes = 0;  // of the optimizer's streams, per second; 0: the update takes no time
};

// F: flops / rate, B twice that; a block that makes gradients in its forward (the head) does all of
// it there. REDUCE sends (N-1)/N of a block's f32 gradients, twice when everyone keeps the sum;
// GATHER and REFRESH as much of its parameters. U streams 28 bytes of each owned element. Memory
// changes are the activations of a micro-batch: F adds a block's, B takes them away.
CostTable step_costs(std::span<const BlockDescription> blocks,
                     const std::vector<BlockTraits>& traits, const HardwareRates& rates,
                     int data_degree, DType compute, const ZeroPlan& zero);

}  // namespace rankine
