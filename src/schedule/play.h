#pragma once
#include <functional>
#include <vector>

#include "schedule/simulate.h"

// Plays programs to their end, or finds out why they cannot get there.
namespace rankine {

struct ActionTimes {
  double reached = 0;         // the rank came to the action
  double start = 0, end = 0;  // it really ran
};

// [rank][index]. Each rank walks its program: computations wait as waits() says and then take their
// seconds; communication is only started. Error{internal} when a rank never reaches its end.
std::vector<std::vector<ActionTimes>> play(
    const std::vector<RankProgram>& ranks,
    const std::function<double(int rank, const Action&)>& seconds);

}  // namespace rankine
