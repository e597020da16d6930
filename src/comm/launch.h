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
};

// The value of an environment variable, or null.
using EnvironmentLookup = std::function<const char*(const char*)>;

// What Open MPI's mpirun, MPICH's mpirun or srun says; nothing when this process was started alone.
// A batch script's own process is alone: it has Slurm's variables of the job, but of no step.
// Error{environment} when a launcher's numbers are missing or contradict each other.
std::optional<Launched> launched_environment(const EnvironmentLookup& lookup);
std::optional<Launched> launched_environment();  // of this process

// Error{environment} with the cure unless MPI counts as many ranks as the launcher started: under a
// launcher of another kind every process is a silent "rank 0 of 1".
void require_agreement(const Launched& launched, int mpi_ranks);

// Set for the ranks that start_local_ranks() starts: the number of the process it runs in.
inline constexpr const char* started_variable = "RANKINE_STARTED";

// Runs `command` as `ranks` ranks on this machine under Open MPI's mpirun and returns the exit code
// of the rank that gave up, otherwise mpirun's, 128 + signal when a signal ended it. Meanwhile a
// SIGINT or SIGTERM reaches the ranks as SIGUSR1 ("finish the step, save, leave"), a second one
// ends them with SIGTERM, a third with SIGKILL; they also end when this process does. Their
// standard input is empty. To be called before there are other threads. Error{environment} when
// there is no Open MPI.
int start_local_ranks(int ranks, const std::vector<std::string>& command);

}  // namespace rankine
