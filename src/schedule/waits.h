#pragma once
#include <vector>

#include "schedule/lifetimes.h"

// What waits for what on one rank: the one rule set of checker, simulator and runtime.
namespace rankine {

// For each action of the program, the communication started earlier on this rank that must have
// finished before it runs. A rank's collectives finish in order, so that of one block only the
// last is named. F of a stage's first block waits for RECV_F, B or I of its last block for RECV_B;
// U waits for every REDUCE and for every send. The first action of a placed stay waits for the
// communication that still reads what was in its memory before: the REDUCE of a gradient, the
// SEND_F of an output, the SEND_B of an input gradient. Were that first action a RECV, the rank
// would wait before it starts the receive; activation_stays() has none such.
std::vector<std::vector<int>> waits(const Program& program, const std::vector<BlockTraits>& blocks,
                                    const PlacedStays& stays = {});

}  // namespace rankine
