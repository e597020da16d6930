#pragma once
#include "comm/world.h"
#include "launch/launch.h"

namespace rankine {

// Joins the other ranks that start_local_ranks() started, through memory of this host alone: no
// port is opened and nothing has a name. Error{environment} names a rank that does not come.
std::unique_ptr<World> make_local_world(const Launched& launched, const WorldSettings& settings);

}  // namespace rankine
