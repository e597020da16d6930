#pragma once
#include <functional>

#include "comm/world.h"

namespace rankine {

// Runs `body` once per rank, each on a thread of its own, as ranks of one world. The first failure
// of a rank interrupts the others; it is thrown once all have ended. Groups of all ranks take
// `ranks_per_host` neighbours for one host's.
void run_ranks_as_threads(int ranks, const WorldSettings& settings,
                          const std::function<void(World&)>& body, int ranks_per_host = 1);

}  // namespace rankine
