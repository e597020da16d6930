#pragma once
#include "comm/world.h"

namespace rankine {

// Connects this process with the others that the launcher started, through MPI; call once.
// Error{environment} in a build without MPI or when MPI cannot give threads one at a time.
std::unique_ptr<World> make_mpi_world(const WorldSettings& settings);
bool built_with_mpi();

}  // namespace rankine
