#pragma once
#include <vector>

#include "schedule/lifetimes.h"

// What waits for what on one rank: the one rule set of checker, simulator and runtime.
namespace rankine {

// For each action of the program, the communication and copies started earlier on this rank that
// must have finished before it runs. A rank's collectives finish in order, so that of one block
// only the last is named. F of a stage's first block waits for RECV_F, B or I of its last block for
// RECV_B; R, B, I and W for the FETCH of what they read, FETCH for its STORE, GATHER for its LOAD;
// U for every REDUCE and for every send. The first action of a placed stay waits for what still
// reads what was in its memory before: the REDUCE of a gradient, the SEND_F of an output, the
// SEND_B of an input gradient, the STORE of what is saved. Were that first action a RECV and the
// reader a send, the rank would wait before it starts the receive; activation_stays() has none
// such.
std::vector<std::vector<int>> waits(const Program& program, const std::vector<BlockTraits>& blocks,
                                    const PlacedStays& stays = {});

}  // namespace rankine
