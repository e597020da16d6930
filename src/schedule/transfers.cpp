#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "schedule/passes.h"
#include "schedule/pipeline.h"

namespace rankine {
namespace {

bool goes_back(ActionKind kind) {  // B or I: makes the gradient of the stage's input
  return kind == ActionKind::backward || kind == ActionKind::backward_input;
}

// A RECV, and the computation of a whole stage in front of which it stands.
struct Receive {
  Action action;
  size_t group = 0;
};

class Transfers {
 public:
  Transfers(const Program& program, const Schedule& schedule, int rank)
      : program_(program), schedule_(schedule), rank_(rank) {
    for (const StageBlocks& stage : stage_blocks(program)) stages_[stage.stage] = stage;
    find_groups();
  }

  Program result() const {
    std::vector<Receive> receives = receives_in_order();
    Program out;
    auto next = receives.begin();
    size_t group = 0;
    for (size_t i = 0; i < program_.size(); ++i) {
      if (group < groups_.size() && groups_[group] == i) {
        for (; next != receives.end() && next->group == group; ++next) out.push_back(next->action);
        ++group;
      }
      out.push_back(program_[i]);
      add_send(program_[i], out);
    }
    return out;
  }

 private:
  using Lane = std::pair<int, ActionKind>;  // peer, RECV_F or RECV_B

  int peer(int stage) const {  // none: no such stage, or this rank's own
    if (stage < 0 || stage >= static_cast<int>(schedule_.rank_of_stage.size())) return Action::none;
    const int rank = schedule_.rank_of_stage[static_cast<size_t>(stage)];
    return rank == rank_ ? Action::none : rank;
  }
  // Where the data of a computation of a stage comes from, and where what it makes goes to.
  static int source(const Action& action) {
    return action.stage + (action.kind == ActionKind::forward ? -1 : 1);
  }
  static int target(const Action& action) {
    return action.stage + (action.kind == ActionKind::forward ? 1 : -1);
  }

  // Indices of the first action of each computation of a whole stage.
  void find_groups() {
    using Key = std::tuple<int, int, int>;  // stage, micro-batch, F or I or W
    Key latest(Action::none, Action::none, 0);
    for (size_t i = 0; i < program_.size(); ++i) {
      const Action& action = program_[i];
      if (!computes(action.kind)) continue;
      const int way = action.kind == ActionKind::forward ? 0 : goes_back(action.kind) ? 1 : 2;
      const Key key(action.stage, action.micro, way);
      if (key != latest) groups_.push_back(i);
      latest = key;
    }
  }

  void add_send(const Action& action, Program& out) const {
    const bool forward = action.kind == ActionKind::forward;
    if ((!forward && !goes_back(action.kind)) || peer(target(action)) == Action::none) return;
    if (action.block != Action::none) {
      const StageBlocks& stage = stages_.at(action.stage);
      if (action.block != (forward ? stage.first + stage.count - 1 : stage.first)) return;
    }
    out.push_back({action.stage, forward ? ActionKind::send_activation : ActionKind::send_gradient,
                   action.micro});
  }

  std::vector<Receive> receives_in_order() const {
    std::vector<Receive> out;
    std::map<Lane, std::vector<size_t>> lanes;  // indices into out
    for (size_t group = 0; group < groups_.size(); ++group) {
      const Action& action = program_[groups_[group]];
      const bool forward = action.kind == ActionKind::forward;
      const int from = peer(source(action));
      if ((!forward && !goes_back(action.kind)) || from == Action::none) continue;
      const ActionKind kind =
          forward ? ActionKind::receive_activation : ActionKind::receive_gradient;
      lanes[{from, kind}].push_back(out.size());
      out.push_back({{action.stage, kind, action.micro}, group == 0 ? 0 : group - 1});
    }
    for (const auto& [lane, indices] : lanes) order_as_sent(lane, indices, out);
    std::stable_sort(out.begin(), out.end(),
                     [](const Receive& a, const Receive& b) { return a.group < b.group; });
    return out;
  }

  // Puts the receives of a lane into the order in which the peer sends, each one early enough.
  void order_as_sent(const Lane& lane, const std::vector<size_t>& indices,
                     std::vector<Receive>& out) const {
    const auto& [from, kind] = lane;
    const bool forward = kind == ActionKind::receive_activation;
    std::map<Action, size_t> sent;  // the RECV of each send, numbered
    for (const Action& action : schedule_.ranks.at(static_cast<size_t>(from)))
      if (forward ? action.kind == ActionKind::forward : goes_back(action.kind))
        sent.emplace(Action{target(action), kind, action.micro}, sent.size());
    std::vector<Receive> ordered;
    for (const size_t index : indices) ordered.push_back(out[index]);
    const auto number = [&](const Receive& receive) {
      const auto found = sent.find(receive.action);
      return found == sent.end() ? sent.size() : found->second;  // never sent: for check to say
    };
    std::stable_sort(ordered.begin(), ordered.end(),
                     [&](const Receive& a, const Receive& b) { return number(a) < number(b); });
    for (size_t i = ordered.size(); i-- > 1;)
      ordered[i - 1].group = std::min(ordered[i - 1].group, ordered[i].group);
    for (size_t i = 0; i < indices.size(); ++i) out[indices[i]] = ordered[i];
  }

  const Program& program_;
  const Schedule& schedule_;
  int rank_;
  std::map<int, StageBlocks> stages_;
  std::vector<size_t> groups_;
};

}  // namespace

Program add_transfers(const Program& program, const Schedule& schedule, int rank) {
  return Transfers(program, schedule, rank).result();
}

}  // namespace rankine
