#pragma once
#include <functional>
#include <string>
#include <vector>

#include "launch/launch.h"

// Starting the ranks of a job as processes of this machine.
namespace rankine {

struct LocalRanks {
  int ranks = 1;
  std::vector<std::string> command = {};            // the program and its arguments
  double timeout_seconds = 60;                      // for a rank that is stopped when others end
  std::function<std::string(int rank)> place = {};  // how messages call a rank
  double grace_seconds = 5;  // for ranks to end by themselves after a failure
};

// Runs the command as so many ranks on this machine, which find each other by
// launched_environment() and make_local_world(), and returns the exit code of the first failure,
// 128 + signal when a signal ended a rank; that it names. The others then have five seconds to end
// by themselves. A SIGINT or SIGTERM reaches the ranks as SIGUSR1 ("finish the step, save, leave"),
// a second one as SIGTERM, a third as SIGKILL; when this process ends, however that comes, the
// system kills them. Their standard input is empty. To be called by the first thread.
// Error{resource} when they cannot be started.
int start_local_ranks(const LocalRanks& job);

}  // namespace rankine
