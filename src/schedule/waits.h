#pragma once
#include <vector>

#include "schedule/lifetimes.h"

// What waits for what on one rank: the one rule set of checker, simulator and runtime.
namespace rankine {

// For each action of the program, the communication started earlier on this rank that must have
// finished before it runs. A rank's collectives finish in order, so that of one block only the
// last is named. U waits for every REDUCE and for every send. Where gradients have placed stays,
// the first action of a stay waits for the REDUCE of what was in its memory before.
std::vector<std::vector<int>> waits(const Program& program, const std::vector<BlockTraits>& blocks,
                                    const std::vector<Stay>& gradients = {});

}  // namespace rankine
