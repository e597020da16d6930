#include "schedule/waits.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rankine {
namespace {

class WaitRules {
 public:
  WaitRules(const Program& program, const std::vector<BlockTraits>& blocks) : blocks_(blocks) {
    for (const StageBlocks& stage : stage_blocks(program)) stages_[stage.stage] = stage;
  }

  std::vector<int> of(const Action& action) const {
    std::vector<int> out;
    if (action.kind == ActionKind::update) {
      for (const auto& [block, last] : reductions_) out.push_back(last.index);
      out.insert(out.end(), sends_.begin(), sends_.end());
    }
    if (action.kind == ActionKind::gather)
      if (const auto load = loads_.find(action.block); load != loads_.end())
        out.push_back(load->second);
    if (action.kind == ActionKind::fetch) add_copy(ActionKind::store, action, out);
    if (!computes(action.kind)) return out;
    if (action.kind != ActionKind::forward) add_copy(ActionKind::fetch, action, out);
    const auto received = received_.find(consumed(action));
    if (received != received_.end()) out.push_back(received->second);
    if (action.block == Action::none && blocks_.empty()) {
      add_stage(parameters_, action.stage, out);
      if (action.kind != ActionKind::forward) add_stage(reductions_, action.stage, out);
      return out;
    }
    for (const Action& part : parts(action)) {
      add_blocks(parameters_, parameters_read(part, blocks_), out);
      add_blocks(reductions_, gradients_written(part, blocks_), out);
    }
    return out;
  }

  void started(const Action& action, int index) {
    switch (action.kind) {
      case ActionKind::load:
        loads_[action.block] = index;
        parameters_[action.block] = {action.stage, index};
        break;
      case ActionKind::store:
      case ActionKind::fetch:
        copies_[action] = index;
        break;
      case ActionKind::gather:
      case ActionKind::refresh:
        parameters_[action.block] = {action.stage, index};
        break;
      case ActionKind::reduce:
        reductions_[action.block] = {action.stage, index};
        break;
      case ActionKind::send_activation:
      case ActionKind::send_gradient:
        sends_.push_back(index);
        break;
      case ActionKind::receive_activation:
      case ActionKind::receive_gradient:
        received_[action] = index;
        break;
      default:
        break;
    }
  }

 private:
  struct Last {
    int stage = 0, index = 0;
  };
  using LastOf = std::map<int, Last>;  // of each block

  // The copy of what a block keeps of a micro-batch.
  void add_copy(ActionKind kind, const Action& of, std::vector<int>& out) const {
    const auto copy = copies_.find({of.stage, kind, of.micro, of.block});
    if (copy != copies_.end()) out.push_back(copy->second);
  }
  // The receive that a computation consumes; no such one is in a program where it consumes none.
  Action consumed(const Action& action) const {
    const bool forward = action.kind == ActionKind::forward;
    Action out{action.stage,
               forward ? ActionKind::receive_activation : ActionKind::receive_gradient,
               action.micro};
    if (action.block == Action::none) return out;
    const StageBlocks& stage = stages_.at(action.stage);
    const int consumer = forward ? stage.first : stage.first + stage.count - 1;
    if (action.block != consumer || action.kind == ActionKind::backward_weight ||
        action.kind == ActionKind::recompute)
      out.kind = ActionKind::release;
    return out;
  }
  std::vector<Action> parts(const Action& action) const {
    if (action.block != Action::none) return {action};
    std::vector<Action> out(blocks_.size(), action);
    for (size_t block = 0; block < out.size(); ++block) out[block].block = static_cast<int>(block);
    return out;
  }
  static void add_stage(const LastOf& last, int stage, std::vector<int>& out) {
    for (const auto& [block, entry] : last)
      if (entry.stage == stage) out.push_back(entry.index);
  }
  static void add_blocks(const LastOf& last, const std::vector<int>& blocks,
                         std::vector<int>& out) {
    for (const int block : blocks)
      if (const auto found = last.find(block); found != last.end())
        out.push_back(found->second.index);
  }

  const std::vector<BlockTraits>& blocks_;
  std::map<int, StageBlocks> stages_;
  LastOf parameters_, reductions_;
  std::map<Action, int> received_, copies_;
  std::map<int, int> loads_;  // of each block, the last
  std::vector<int> sends_;
};

// The communication that reads a stay, or none.
int reader(const Program& program, const Stay& stay) {
  const int stage = program[static_cast<size_t>(stay.first)].stage;
  for (int i = stay.first; i <= stay.last; ++i) {
    const Action& action = program[static_cast<size_t>(i)];
    const bool reads =
        stay.kind == StayKind::gradient
            ? action.kind == ActionKind::reduce && action.block == stay.block
        : stay.kind == StayKind::input || stay.kind == StayKind::saved
            ? action.kind == ActionKind::store && action.block == stay.block &&
                  action.micro == stay.micro
            : action.stage == stage && action.micro == stay.micro &&
                  ((stay.kind == StayKind::output && action.kind == ActionKind::send_activation) ||
                   (stay.kind == StayKind::input_gradient &&
                    action.kind == ActionKind::send_gradient));
    if (reads) return i;
  }
  return Action::none;
}

void add_takeovers(const Program& program, const std::vector<Stay>& stays,
                   std::vector<std::vector<int>>& out) {
  std::vector<const Stay*> order;
  for (const Stay& stay : stays) order.push_back(&stay);
  std::stable_sort(order.begin(), order.end(),
                   [](const Stay* a, const Stay* b) { return a->first < b->first; });
  std::vector<const Stay*> owners;  // of memory, unless wholly taken over since
  for (const Stay* stay : order) {
    const int64_t end = stay->offset + stay->bytes;
    std::vector<int>& waits = out[static_cast<size_t>(stay->first)];
    for (const Stay* owner : owners) {
      if (owner->offset >= end || stay->offset >= owner->offset + owner->bytes) continue;
      const int wait = reader(program, *owner);
      if (wait == Action::none) continue;
      if (std::find(waits.begin(), waits.end(), wait) == waits.end()) waits.push_back(wait);
    }
    std::erase_if(owners, [&](const Stay* owner) {
      return stay->offset <= owner->offset && owner->offset + owner->bytes <= end;
    });
    owners.push_back(stay);
  }
}

}  // namespace

std::vector<std::vector<int>> waits(const Program& program, const std::vector<BlockTraits>& blocks,
                                    const PlacedStays& stays) {
  std::vector<std::vector<int>> out;
  WaitRules rules(program, blocks);
  for (size_t i = 0; i < program.size(); ++i) {
    out.push_back(rules.of(program[i]));
    rules.started(program[i], static_cast<int>(i));
  }
  add_takeovers(program, stays.gradients, out);
  add_takeovers(program, stays.passing, out);
  add_takeovers(program, stays.saved, out);
  return out;
}

}  // namespace rankine
