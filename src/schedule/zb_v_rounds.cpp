#include <algorithm>
#include <utility>

#include "schedule/v_play.h"

namespace rankine {
namespace {

using enum VWay;

// Where a wait too short for a whole W may take one all the same.
struct Fill {
  bool before_forward = false, before_backward = false;
};

class Rounds {
 public:
  Rounds(VPlay play, const ComputationSeconds& seconds, const Fill& fill,
         std::vector<double> accepted)
      : play_(std::move(play)), seconds_(seconds), fill_(fill), accepted_(std::move(accepted)) {}

  // False where the plan gets stuck.
  bool run() {
    warm_up();
    for (int round = 0; round < 2 * play_.micros() && !stuck_; ++round) {
      backwards();
      forwards();
    }
    for (int rank = 0; rank < play_.ranks() && !stuck_; ++rank)
      while (play_.weights_wait(rank)) play_.compute_weight(rank);
    return !stuck_;
  }

  const VPlay& play() const { return play_; }
  std::vector<double> idle() const {
    std::vector<double> out;
    for (int rank = 0; rank < play_.ranks(); ++rank) out.push_back(play_.idle(rank));
    return out;
  }

 private:
  int forwards_of(int rank) const {
    return play_.done(forward_down, rank) + play_.done(forward_up, rank);
  }
  void compute(VWay way, int rank) {
    if (play_.ready(way, rank) == VPlay::never ||
        (goes_forward(way) && play_.in_flight(rank) >= play_.limit()))
      stuck_ = true;
    else
      play_.compute(way, rank);
  }

  // The first micro-batch goes down and up again; while a rank waits for it on its way up, it and
  // those above it forward further ones. Then each rank forwards as much as the one above it.
  void warm_up() {
    const int ranks = play_.ranks();
    for (int rank = 0; rank < ranks; ++rank) compute(forward_down, rank);
    for (int rank = ranks - 1; rank >= 0 && !stuck_; --rank) {
      const double wanted = play_.ready(forward_up, rank);
      while (play_.in_flight(rank) + 2 * (rank + 1) <= play_.limit() &&
             play_.clock(rank) + seconds_.forward <= wanted && play_.left(forward_down, rank) > 0 &&
             !stuck_)
        for (int above = 0; above <= rank; ++above) compute(forward_down, above);
      compute(forward_up, rank);
    }
    VWay way = forward_down;
    for (int rank = 1; rank < ranks; ++rank) {
      const int up = play_.done(forward_up, rank - 1);
      while (!stuck_ && (forwards_of(rank) < forwards_of(rank - 1) ||
                         (play_.done(forward_up, rank) <= up && up < play_.micros()))) {
        for (int below = ranks - 1; below >= rank; --below)
          if (play_.left(way, below) > 0) compute(way, below);
        way = way == forward_down ? forward_up : forward_down;
      }
    }
  }

  // Fills the wait before a computation with W; `always`: also one that does not quite fit, unless
  // other ranks wait so long in any case that this one may.
  void fill_wait(VWay way, int rank, bool always) {
    const double ready = play_.ready(way, rank);
    if (ready == VPlay::never) return;
    while (play_.weights_wait(rank) && ready >= play_.clock(rank) + seconds_.backward_weight)
      play_.compute_weight(rank);
    const double wait = ready - play_.clock(rank);
    if (always && play_.weights_wait(rank) && wait > slack(rank)) play_.compute_weight(rank);
  }

  // How much longer this rank may wait without being the one that waits longest: in this play, and
  // in the one before it.
  double slack(int rank) const {
    double longest = 0;
    for (int other = 0; other < play_.ranks(); ++other)
      longest = std::max(longest, play_.idle(other));
    if (!accepted_.empty())
      longest = std::max(longest, *std::max_element(accepted_.begin(), accepted_.end()) -
                                      accepted_[static_cast<size_t>(rank)]);
    return longest - play_.idle(rank);
  }

  bool goes_up(int rank) const {
    if (play_.done(backward_up, rank) >= play_.done(backward_down, rank)) return false;
    return rank == play_.ranks() - 1 || play_.ready(backward_up, rank) < VPlay::never ||
           play_.left(backward_down, rank) == 0;
  }

  void backwards() {
    std::vector<std::pair<int, VWay>> order;
    for (int rank = play_.ranks() - 1; rank >= 0; --rank)
      if (goes_up(rank)) order.emplace_back(rank, backward_up);
    for (int rank = 0; rank < play_.ranks(); ++rank)
      if (!goes_up(rank)) order.emplace_back(rank, backward_down);
    for (const auto& [rank, way] : order) {
      if (stuck_) return;
      fill_wait(way, rank, way == backward_up || fill_.before_backward);
      compute(way, rank);
    }
  }

  void forwards() {
    for (int rank = 0; rank < play_.ranks() && !stuck_; ++rank) {
      if (play_.left(forward_up, rank) == 0) continue;
      VWay way = forward_up;
      if (play_.done(forward_up, rank) >= play_.done(forward_down, rank))
        way = forward_down;
      else if (rank < play_.ranks() - 1 && play_.ready(forward_up, rank) == VPlay::never) {
        if (play_.ready(forward_down, rank) == VPlay::never) continue;
        way = forward_down;
      }
      while (play_.in_flight(rank) >= play_.limit() && play_.weights_wait(rank))
        play_.compute_weight(rank);
      fill_wait(way, rank, fill_.before_forward);
      compute(way, rank);
    }
  }

  VPlay play_;
  ComputationSeconds seconds_;
  Fill fill_;
  std::vector<double> accepted_;  // waits of the ranks in the play before, or empty
  bool stuck_ = false;
};

}  // namespace

std::vector<VPlay> play_v_in_rounds(int ranks, int micros, const ComputationSeconds& seconds) {
  const VPlay empty(ranks, micros, seconds);
  std::vector<VPlay> out;
  for (const bool before_backward : {true, false})
    for (const bool before_forward : {true, false}) {
      double longest = VPlay::never;
      std::vector<double> accepted;
      while (true) {  // as long as the ranks' waits get shorter
        Rounds rounds(empty, seconds, {before_forward, before_backward}, accepted);
        if (!rounds.run()) break;
        accepted = rounds.idle();
        const double now = *std::max_element(accepted.begin(), accepted.end());
        if (now >= longest) break;
        longest = now;
        out.push_back(rounds.play());
      }
    }
  return out;
}

}  // namespace rankine
