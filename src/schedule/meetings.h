#pragma once
#include <string>
#include <vector>

#include "schedule/simulate.h"

// Which communication actions of which ranks belong together: a collective joins its data group, a
// transfer a sender and a receiver; a copy from or to a tier stands alone.
namespace rankine {

struct Meeting {
  struct Side {
    int rank = 0, index = 0;  // of the action in the rank's program
  };
  std::vector<Side> sides;
  int before = Action::none;  // the meeting of the same group or pair that ends first
};

struct Meetings {
  std::vector<Meeting> all;
  std::vector<std::vector<int>> of;  // [rank][index] -> meeting, or none for other actions
};

// Copies of a rank follow one another. Pairs the k-th collective of each rank of a data group and
// the k-th send with the k-th receive of each ordered pair of ranks and direction. Throws
// Error{internal} naming both sides where they differ, or the side that nobody meets.
Meetings meetings(const std::vector<RankProgram>& ranks);

// "rank 1 (pipeline 0, data 1, tensor 0), action 7 (0REDUCE3.2)"
std::string describe(const std::vector<RankProgram>& ranks, Meeting::Side side);

}  // namespace rankine
