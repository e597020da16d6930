#include "schedule/meetings.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"

namespace rankine {
namespace {

using Side = Meeting::Side;

bool is_collective(ActionKind kind) {
  return kind == ActionKind::gather || kind == ActionKind::reduce || kind == ActionKind::refresh;
}
bool is_send(ActionKind kind) {
  return kind == ActionKind::send_activation || kind == ActionKind::send_gradient;
}
bool is_receive(ActionKind kind) {
  return kind == ActionKind::receive_activation || kind == ActionKind::receive_gradient;
}

bool is_copy(ActionKind kind) {
  return kind == ActionKind::load || kind == ActionKind::store || kind == ActionKind::fetch;
}

// The action at the other end of a transfer.
Action counterpart(const Action& action) {
  switch (action.kind) {
    case ActionKind::send_activation:
      return {action.stage + 1, ActionKind::receive_activation, action.micro};
    case ActionKind::receive_activation:
      return {action.stage - 1, ActionKind::send_activation, action.micro};
    case ActionKind::send_gradient:
      return {action.stage - 1, ActionKind::receive_gradient, action.micro};
    default:
      return {action.stage + 1, ActionKind::send_gradient, action.micro};
  }
}

class Matching {
 public:
  explicit Matching(const std::vector<RankProgram>& ranks) : ranks_(ranks) {
    for (const RankProgram& rank : ranks)
      result_.of.emplace_back(rank.program.size(), Action::none);
  }

  Meetings result() {
    check_places();
    match_collectives();
    match_transfers();
    add_copies();
    return std::move(result_);
  }

 private:
  struct Lane {  // one direction of one pair of ranks
    std::vector<Side> sends, receives;
  };
  using StageKey = std::tuple<int, int, int>;  // data, tensor, stage

  const Action& action(Side side) const {
    return ranks_[static_cast<size_t>(side.rank)].program[static_cast<size_t>(side.index)];
  }
  Side end_of(int rank) const {
    return {rank, static_cast<int>(ranks_[static_cast<size_t>(rank)].program.size())};
  }
  std::string text(Side side) const { return describe(ranks_, side); }

  void check_places() const {
    std::map<RankPlace, int> seen;
    std::map<std::pair<int, int>, int> first;  // of a tensor group
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      const RankPlace& place = ranks_[static_cast<size_t>(r)].place;
      const Program& program = ranks_[static_cast<size_t>(r)].program;
      expect(seen.emplace(place, r).second, "each rank has its own place");
      const int other = first.emplace(std::pair(place.pipeline, place.data), r).first->second;
      const Program& theirs = ranks_[static_cast<size_t>(other)].program;
      const auto [a, b] =
          std::mismatch(theirs.begin(), theirs.end(), program.begin(), program.end());
      if (a == theirs.end() && b == program.end()) continue;
      fail(ErrorKind::internal, "programs of one tensor group differ: {} against {}",
           text({other, static_cast<int>(a - theirs.begin())}),
           text({r, static_cast<int>(b - program.begin())}));
    }
  }

  std::vector<Side> collectives(int rank) const {
    std::vector<Side> out;
    const Program& program = ranks_[static_cast<size_t>(rank)].program;
    for (size_t i = 0; i < program.size(); ++i)
      if (is_collective(program[i].kind)) out.push_back({rank, static_cast<int>(i)});
    return out;
  }

  void match_collectives() {
    std::map<std::pair<int, int>, std::vector<int>> groups;  // (pipeline, tensor) -> ranks
    for (size_t r = 0; r < ranks_.size(); ++r)
      groups[{ranks_[r].place.pipeline, ranks_[r].place.tensor}].push_back(static_cast<int>(r));
    for (const auto& [key, members] : groups) {
      std::vector<std::vector<Side>> lists;
      for (const int rank : members) lists.push_back(collectives(rank));
      for (size_t m = 1; m < lists.size(); ++m) compare(lists[0], lists[m], members[0], members[m]);
      int before = Action::none;
      for (size_t k = 0; k < lists[0].size(); ++k) {
        std::vector<Side> sides;
        for (const std::vector<Side>& list : lists) sides.push_back(list[k]);
        before = add(std::move(sides), before);
      }
    }
  }

  void compare(const std::vector<Side>& one, const std::vector<Side>& other, int one_rank,
               int other_rank) const {
    for (size_t k = 0; k < std::min(one.size(), other.size()); ++k)
      if (action(one[k]) != action(other[k]))
        fail(ErrorKind::internal, "collective {} of a data group differs: {} against {}", k,
             text(one[k]), text(other[k]));
    if (one.size() == other.size()) return;
    const auto& [longer, shorter, rank] = one.size() > other.size()
                                              ? std::tie(one, other, other_rank)
                                              : std::tie(other, one, one_rank);
    fail(ErrorKind::internal, "{} is a collective that {} never joins",
         text(longer[shorter.size()]), text(end_of(rank)));
  }

  std::map<StageKey, int> stage_ranks() const {
    std::map<StageKey, int> out;
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      const RankProgram& rank = ranks_[static_cast<size_t>(r)];
      for (const Action& a : rank.program) {
        if (!computes(a.kind)) continue;
        const int holder =
            out.emplace(StageKey(rank.place.data, rank.place.tensor, a.stage), r).first->second;
        if (holder != r)
          fail(ErrorKind::internal, "stage {} is computed by rank {} and by rank {}", a.stage,
               holder, r);
      }
    }
    return out;
  }

  void match_transfers() {
    const std::map<StageKey, int> holders = stage_ranks();
    std::map<std::tuple<int, int, ActionKind>, Lane> lanes;  // from, to, kind of the send
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      const RankProgram& rank = ranks_[static_cast<size_t>(r)];
      for (int i = 0; i < static_cast<int>(rank.program.size()); ++i) {
        const Action& a = rank.program[static_cast<size_t>(i)];
        if (!is_send(a.kind) && !is_receive(a.kind)) continue;
        const Action other = counterpart(a);
        const auto peer = holders.find({rank.place.data, rank.place.tensor, other.stage});
        if (peer == holders.end())
          fail(ErrorKind::internal, "{}: no rank of data {}, tensor {} computes stage {}",
               text({r, i}), rank.place.data, rank.place.tensor, other.stage);
        if (peer->second == r)
          fail(ErrorKind::internal, "{}: the rank holds both stages of the transfer itself",
               text({r, i}));
        if (is_send(a.kind))
          lanes[{r, peer->second, a.kind}].sends.push_back({r, i});
        else
          lanes[{peer->second, r, other.kind}].receives.push_back({r, i});
      }
    }
    for (const auto& [key, lane] : lanes) pair_up(lane);
  }

  // Copies from and to a tier meet nobody; those of a rank run one after another.
  void add_copies() {
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      const Program& program = ranks_[static_cast<size_t>(r)].program;
      int before = Action::none;
      for (int i = 0; i < static_cast<int>(program.size()); ++i)
        if (is_copy(program[static_cast<size_t>(i)].kind)) before = add({{r, i}}, before);
    }
  }

  void pair_up(const Lane& lane) {
    int before = Action::none;
    const size_t count = std::min(lane.sends.size(), lane.receives.size());
    for (size_t k = 0; k < count; ++k) {
      const Side send = lane.sends[k], receive = lane.receives[k];
      if (action(receive) != counterpart(action(send)))
        fail(ErrorKind::internal, "transfer {} of a pair differs: {} against {}", k, text(send),
             text(receive));
      before = add({send, receive}, before);
    }
    if (lane.sends.size() > count)
      fail(ErrorKind::internal, "{} is never received", text(lane.sends[count]));
    if (lane.receives.size() > count)
      fail(ErrorKind::internal, "{} is never sent", text(lane.receives[count]));
  }

  int add(std::vector<Side> sides, int before) {
    const int meeting = static_cast<int>(result_.all.size());
    for (const Side& side : sides)
      result_.of[static_cast<size_t>(side.rank)][static_cast<size_t>(side.index)] = meeting;
    result_.all.push_back({std::move(sides), before});
    return meeting;
  }

  const std::vector<RankProgram>& ranks_;
  Meetings result_;
};

}  // namespace

Meetings meetings(const std::vector<RankProgram>& ranks) {
  return Matching(ranks).result();
}

std::string describe(const std::vector<RankProgram>& ranks, Meeting::Side side) {
  const RankPlace& place = ranks[static_cast<size_t>(side.rank)].place;
  const Program& program = ranks[static_cast<size_t>(side.rank)].program;
  const auto index = static_cast<size_t>(side.index);
  return fmt::format("rank {} (pipeline {}, data {}, tensor {}), action {} ({})", side.rank,
                     place.pipeline, place.data, place.tensor, side.index,
                     index < program.size() ? to_string(program[index]) : "its end");
}

}  // namespace rankine
