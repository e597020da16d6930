#include "comm/mpi_world.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "collectives.h"

// These run under mpirun, where ctest starts this program that way; alone they are skipped.
namespace rankine {
namespace {

TEST(MpiWorld, CollectivesAndTransfersAreExact) {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr)
    GTEST_SKIP() << "started without mpirun, which gives the ranks";
  WorldSettings settings;
  settings.shared_memory = std::getenv("RANKINE_TEST_WITHOUT_SHARED_MEMORY") == nullptr;
  settings.mesh.degree = {1, std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE")), 1};
  const auto world = make_mpi_world(settings);
  {
    const Mesh mesh(*world, settings.mesh);
    test::check_communicator(*mesh.world);
    test::check_communicator(*mesh.data);
  }
  EXPECT_NE(world->description().find(settings.shared_memory ? "shared memory" : "MPI between all"),
            std::string::npos);
}

}  // namespace
}  // namespace rankine
