#pragma once
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <vector>

// The processes of this machine that a job's launcher consists of, and their end when the launcher
// does not end itself: Open MPI's may stay when the network is cut. Rule: nothing here calls MPI.
namespace rankine {

// The launcher that started `process`, nearest first: the nearest of its ancestors that are Open
// MPI's mpirun or daemon, and those directly above. Only processes of this user, never number 1.
std::vector<pid_t> launcher_of(pid_t process, const std::filesystem::path& proc = "/proc");

// What a process has started and what has started these, parents first.
std::vector<pid_t> processes_below(pid_t process);

// Leaves a process behind that kills what then still runs of the launcher of this process and of
// all it has started here. Not with SIGTERM first: the launcher knows that it is to end, and Open
// MPI's answers by a crash with a trace of its own. Does nothing when no launcher is found.
void end_launcher_after(std::chrono::milliseconds grace);

// Whether a signal or a debugger has stopped it.
bool is_stopped(pid_t process);
// The ranks of this host's part of the job that are stopped by a signal, ascending; none when no
// launcher is found.
std::vector<int> stopped_ranks();

}  // namespace rankine
