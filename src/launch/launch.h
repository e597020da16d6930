#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

// How the processes of a job come to be: what a launcher tells each of them, and starting several
// on this machine. Rule: nothing here calls MPI, so all of it may run before MPI_Init.
namespace rankine {

// What the launcher says of this process; local: among the ranks of this machine.
struct Launched {
  int ranks = 1, rank = 0, local_ranks = 1, local_rank = 0;
  std::string by;  // "mpirun (Open MPI)", for messages
  int board = -1;  // the descriptor of a LocalBoard: start_local_ranks() started it
};

// The value of an environment variable, or null.
using EnvironmentLookup = std::function<const char*(const char*)>;

// What start_local_ranks(), Open MPI's mpirun, MPICH's mpirun or srun says; nothing when this
// process was started alone. A batch script's own process is alone: it has Slurm's variables of the
// job, but of no step. Error{environment} when a launcher's numbers are missing or contradict each
// other.
std::optional<Launched> launched_environment(const EnvironmentLookup& lookup);
std::optional<Launched> launched_environment();  // of this process

// Error{environment} with the cure unless MPI counts as many ranks as the launcher started: under a
// launcher of another kind every process is a silent "rank 0 of 1".
void require_agreement(const Launched& launched, int mpi_ranks);

}  // namespace rankine
