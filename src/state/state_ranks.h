#pragma once
#include "comm/communicator.h"

namespace rankine {

// Who shares model states with this rank. All of it outlives the states.
struct StateRanks {
  Communicator& data;                // ZeRO's shards and the sums of gradients
  Communicator* tensor = nullptr;    // partial gradients, where the model is split
  Communicator* replicas = nullptr;  // of it, the ranks with the same key/value heads
};

}  // namespace rankine
