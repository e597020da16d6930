#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "schedule/pipeline.h"

// A V of two stages per rank, played action by action: what the planners of ZB-V decide upon. Data
// goes down the ranks and turns at the last one to come up; its gradients come the same way back.
namespace rankine {

enum class VWay : uint8_t { forward_down, forward_up, backward_down, backward_up };

class VPlay {
 public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  VPlay(int ranks, int micros, const ComputationSeconds& seconds);

  int ranks() const { return static_cast<int>(ranks_.size()); }
  int micros() const { return micros_; }
  int done(VWay way, int rank) const { return of(rank).done[static_cast<size_t>(way)]; }
  int left(VWay way, int rank) const { return micros_ - done(way, rank); }
  double clock(int rank) const { return of(rank).clock; }
  double idle(int rank) const { return of(rank).idle; }  // seconds waited since its first action
  int in_flight(int rank) const { return of(rank).in_flight; }  // stages of micro-batches, F to W
  int limit() const { return 2 * ranks(); }
  bool weights_wait(int rank) const { return !of(rank).weights.empty(); }
  // When the way's next micro-batch has what it needs on this rank; never: unknown, or none left.
  double ready(VWay way, int rank) const;

  // Computes the way's next micro-batch, as soon as it is ready; the oldest W.
  void compute(VWay way, int rank);
  void compute_weight(int rank);

  double seconds() const;  // until the last rank is done
  std::vector<Program> programs() const;

 private:
  struct Rank {
    double clock = 0, idle = 0;
    std::array<int, 4> done = {};
    std::deque<Action> weights = {};  // whose I is done
    int in_flight = 0;
    Program program = {};
  };
  const Rank& of(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  size_t place(int rank, int micro) const {
    return static_cast<size_t>(rank) * static_cast<size_t>(micros_) + static_cast<size_t>(micro);
  }

  int micros_;
  ComputationSeconds seconds_;
  std::vector<Rank> ranks_;
  std::array<std::vector<double>, 4> ends_;  // of each way, by rank and micro-batch
};

inline bool goes_forward(VWay way) {
  return way == VWay::forward_down || way == VWay::forward_up;
}

// Both plan so that never more than limit() stages of micro-batches are between F and W on a rank.
// Rank by rank, whoever can act first acts; always comes to an end.
VPlay play_v_greedily(int ranks, int micros, const ComputationSeconds& seconds);
// In rounds of one I and one F on every rank, as the paper's heuristic does; the plans that do not
// get stuck.
std::vector<VPlay> play_v_in_rounds(int ranks, int micros, const ComputationSeconds& seconds);

}  // namespace rankine
