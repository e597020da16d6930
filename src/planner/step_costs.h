#pragma once
#include <span>
#include <vector>

#include "model/model.h"
#include "schedule/passes.h"
#include "schedule/simulate.h"
#include "state/zero_plan.h"

// What the actions of step programs cost on given hardware, for the simulator: from the flops that
// blocks describe and the bytes that collectives and transfers send.
namespace rankine {

struct HardwareRates {
  double flops = 0;         // of one rank's products, per second
  double bytes_sent = 0;    // by one rank, per second
  double memory_bytes = 0;  // of the optimizer's streams, per second; 0: the update takes no time
  double tier_bytes = 0;    // copied from and to tiers, per second; 0: copies take no time
};

// One rank's blocks, in the order of its program's numbers.
struct RankBlocks {
  std::vector<BlockDescription> blocks;
  std::vector<BlockTraits> traits;
};

struct CostSetup {
  HardwareRates rates;
  int data_degree = 1, tensor_degree = 1;
  DType compute = DType::f32;
  ZeroPlan zero = {};
  bool delayed_update = false;  // hidden: U rounds the master weights and no more
};

// F: flops / rate, I and W as much each, B both; a head does everything in its B. On T tensor ranks
// F and I of a layer also sum two activations over them, 2 (T-1)/T of their bytes each. REDUCE
// sends (N-1)/N of a block's f32 gradients, twice when everyone keeps the sum; GATHER and REFRESH
// as much of its parameters; a transfer one activation. U streams 28 bytes of each owned element,
// or 6. LOAD copies a block's parameters, or the shard where they are sharded, STORE and FETCH what
// a block keeps of a micro-batch. Memory changes are the activations of a micro-batch: F and FETCH
// add a block's, STORE and B or W take them away.
CostTable step_costs(const std::vector<RankBlocks>& ranks, const CostSetup& setup);

// Layers of each of so many stages such that the slowest is as fast as can be, by the flops of
// layers and head.
std::vector<int64_t> balanced_layers(std::span<const BlockDescription> blocks, int stages);

}  // namespace rankine
