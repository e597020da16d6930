#pragma once
#include <functional>

#include "base/options.h"
#include "comm/world.h"
#include "options/parallel_options.h"

namespace rankine {

// What one rank of a job works with.
struct Rank {
  World& world;
  int threads;                       // to compute with
  int local_ranks;                   // of this host, itself among them
  std::string machine;               // a line for people: "host a, processors 0-1, 2 threads"
  std::vector<int> host_processors;  // those of all ranks of this host
};

// How ranks are to come to be.
struct RanksJob {
  const ParallelOptions& options;
  int64_t threads;  // of each; 0: its share of the processors
  std::string command;
  const CommandArguments& arguments;
  // Called before any rank is started here: Error{resource} when their memory does not suffice.
  std::function<void(const MeshShape& mesh)> check_memory = {};
};

// Runs `body` on every rank of the job: those that a launcher started, those that --ranks asks for,
// which this starts itself, or this process alone. The first failure is printed once with its place
// and ends them all. Returns the exit code. Error{resource} when this machine is too small for the
// ranks or threads asked for.
int on_ranks(const RanksJob& job, const std::function<int(const Rank&)>& body);

// Error{resource} when they are far more than the processors.
void check_threads(int64_t threads);

// The threads of the first of `ranks` ranks when all of them run on this machine: `asked`, or for 0
// what on_ranks() would give it.
int threads_of_first_rank(int64_t asked, int ranks);

}  // namespace rankine
