#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "schedule/v_play.h"

namespace rankine {
namespace {

using enum VWay;

// A wait of `shortest_wait` or more takes a W.
class Greedy {
 public:
  Greedy(VPlay play, double shortest_wait) : play_(std::move(play)), shortest_wait_(shortest_wait) {
    forwards_next_.resize(static_cast<size_t>(play_.ranks()));
  }

  VPlay result() {
    for (int left = play_.ranks() * play_.micros() * 6; left > 0; --left) {
      Choice best;
      int at = 0;
      for (int rank = 0; rank < play_.ranks(); ++rank) {
        const Choice choice = choose(rank);
        if (choice.start >= best.start) continue;
        best = choice;
        at = rank;
      }
      expect(best.start < VPlay::never, "the limit leaves room for the oldest micro-batch");
      if (!best.way) {
        play_.compute_weight(at);
        continue;
      }
      play_.compute(*best.way, at);
      forwards_next_[static_cast<size_t>(at)] = !goes_forward(*best.way);
    }
    return std::move(play_);
  }

 private:
  struct Choice {
    std::optional<VWay> way = {};  // none: W
    double start = VPlay::never;
  };

  // The way down keeps one place free, so that the oldest micro-batch always gets through.
  bool fits(VWay way, int rank) const {
    if (!goes_forward(way)) return true;
    return play_.in_flight(rank) < play_.limit() - (way == forward_down ? 1 : 0);
  }

  // F and I in turn where both are ready, and what is nearer to its end first.
  Choice choose(int rank) const {
    std::array<VWay, 4> order = {backward_up, backward_down, forward_up, forward_down};
    if (forwards_next_[static_cast<size_t>(rank)])
      std::rotate(order.begin(), order.begin() + 2, order.end());
    const double now = play_.clock(rank);
    Choice out;
    for (const VWay way : order) {
      if (!fits(way, rank)) continue;
      const double start = std::max(now, play_.ready(way, rank));
      if (start < out.start) out = {way, start};
    }
    const bool waits = out.start > now && out.start >= now + shortest_wait_;
    if (play_.weights_wait(rank) && waits) out = {{}, now};
    return out;
  }

  VPlay play_;
  double shortest_wait_;
  std::vector<bool> forwards_next_;
};

}  // namespace

VPlay play_v_greedily(int ranks, int micros, const ComputationSeconds& seconds) {
  const VPlay empty(ranks, micros, seconds);
  VPlay best = Greedy(empty, 0).result();
  for (const double share : {0.5, 1.0}) {
    VPlay other = Greedy(empty, share * seconds.backward_weight).result();
    if (other.seconds() < best.seconds()) best = std::move(other);
  }
  return best;
}

}  // namespace rankine
