#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedule/lifetimes.h"

// Plays a set of per-rank programs against a cost table. The same rules decide what the checker
// proves, what the planner predicts and what the runtime does.
namespace rankine {

// Where a rank stands. Collectives (GATHER, REDUCE, REFRESH) join the ranks that differ in `data`
// only; transfers go to the rank of the next or previous stage, which differs in `pipeline` alone;
// copies from and to tiers (LOAD, STORE, FETCH) run on the rank itself beside its computations.
struct RankPlace {
  int pipeline = 0, data = 0, tensor = 0;
  auto operator<=>(const RankPlace&) const = default;
};

struct RankProgram {
  RankPlace place;
  Program program;
  std::vector<BlockTraits> blocks = {};  // of all its stages; empty: nothing is known to be tied
  PlacedStays stays = {};
};

// Throws Error{internal} unless every rank reaches the end of its program, with rendezvous sends
// (a send completes only together with its receive) and with collectives in order per group. The
// message names a rank that waits, its action, and what it waits for; programs whose collectives or
// transfers differ in kind, block or order are named with both sides, and so are ranks of one
// tensor group whose programs differ at all: their F and B hold collectives of their own.
void check_completes(const std::vector<RankProgram>& ranks);

// Seconds and bytes are functions of the rank's index and the action. A cost of 0 is legal.
struct CostTable {
  std::function<double(int rank, const Action&)> seconds;
  // Bytes that live from the start of this action on (positive) or end with it (negative);
  // communication takes them when its rank starts it. Empty: memory is of no interest.
  std::function<int64_t(int rank, const Action&)> memory_change;
};

struct TimelineEntry {
  Action action;
  int index = 0;  // in the rank's program
  double start = 0, end = 0;
};

struct RankTimeline {
  std::vector<TimelineEntry> compute;        // in order, never overlapping
  std::vector<TimelineEntry> communication;  // and copies, as they really ran
  struct MemoryPoint {
    double time = 0;
    int64_t bytes = 0;
  };
  std::vector<MemoryPoint> memory;  // after each change, from 0 at time 0
  int64_t peak_bytes = 0;
};

struct Simulation {
  std::vector<RankTimeline> ranks;
  double seconds = 0;  // until the last rank is done
  // Of one rank: the share of its communication time during which it also computed; 1 when it has
  // none.
  double overlap(int rank) const;
  // Of all ranks: the share of ranks x seconds in which a rank did not compute.
  double bubble() const;
};
// Error{internal} as check_completes. Collectives of a group run one after another; each starts
// when every member has started it and takes the largest of their costs. Each pair's transfers and
// each rank's copies likewise.
Simulation simulate(const std::vector<RankProgram>& ranks, const CostTable& cost);

}  // namespace rankine
