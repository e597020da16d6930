find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(dnnl REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)

# Open MPI carries ranks between processes; without it rankine runs on one rank. MPICH may be the
# system's default, so Open MPI's compiler wrapper is asked for by name.
find_program(MPI_CXX_COMPILER NAMES mpicxx.openmpi mpicxx)
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI COMPONENTS CXX)
