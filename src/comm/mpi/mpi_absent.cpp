#include "base/error.h"
#include "comm/mpi_world.h"

namespace rankine {

std::unique_ptr<World> make_mpi_world(const WorldSettings&) {
  fail(ErrorKind::environment,
       "this rankine was built without MPI, so that it runs on one rank only; install "
       "libopenmpi-dev "
       "and build again");
}

bool built_with_mpi() {
  return false;
}

}  // namespace rankine
