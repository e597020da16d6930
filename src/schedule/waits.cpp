#include "schedule/waits.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rankine {
namespace {

using BlockKey = std::pair<int, int>;  // stage, block

class WaitRules {
 public:
  explicit WaitRules(const std::vector<BlockTraits>& blocks) : blocks_(blocks) {}

  std::vector<int> of(const Action& action) const {
    std::vector<int> out;
    if (action.kind == ActionKind::update) {
      for (const auto& [block, index] : reductions_) out.push_back(index);
      out.insert(out.end(), sends_.begin(), sends_.end());
    }
    const bool forward = action.kind == ActionKind::forward;
    if (!forward && action.kind != ActionKind::backward) return out;
    const auto received = received_.find(Action{
        action.stage, forward ? ActionKind::receive_activation : ActionKind::receive_gradient,
        action.micro});
    if (received != received_.end()) out.push_back(received->second);
    if (action.block == Action::none && blocks_.empty()) {
      add_stage(parameters_, action.stage, out);
      if (!forward) add_stage(reductions_, action.stage, out);
      return out;
    }
    for (const Action& part : parts(action)) {
      add_blocks(parameters_, action.stage, parameters_read(part, blocks_), out);
      add_blocks(reductions_, action.stage, gradients_written(part, blocks_), out);
    }
    return out;
  }

  void started(const Action& action, int index) {
    switch (action.kind) {
      case ActionKind::gather:
      case ActionKind::refresh:
        parameters_[{action.stage, action.block}] = index;
        break;
      case ActionKind::reduce:
        reductions_[{action.stage, action.block}] = index;
        break;
      case ActionKind::send_activation:
      case ActionKind::send_gradient:
        sends_.push_back(index);
        break;
      case ActionKind::receive_activation:
      case ActionKind::receive_gradient:
        received_[action] = index;
        break;
      case ActionKind::forward:
      case ActionKind::backward:
      case ActionKind::update:
      case ActionKind::release:
        break;
    }
  }

 private:
  using LastOf = std::map<BlockKey, int>;

  std::vector<Action> parts(const Action& action) const {
    if (action.block != Action::none) return {action};
    std::vector<Action> out(blocks_.size(), action);
    for (size_t block = 0; block < out.size(); ++block) out[block].block = static_cast<int>(block);
    return out;
  }
  static void add_stage(const LastOf& last, int stage, std::vector<int>& out) {
    for (const auto& [block, index] : last)
      if (block.first == stage) out.push_back(index);
  }
  static void add_blocks(const LastOf& last, int stage, const std::vector<int>& blocks,
                         std::vector<int>& out) {
    for (const int block : blocks)
      if (const auto found = last.find({stage, block}); found != last.end())
        out.push_back(found->second);
  }

  const std::vector<BlockTraits>& blocks_;
  LastOf parameters_, reductions_;
  std::map<Action, int> received_;
  std::vector<int> sends_;
};

int reduction(const Program& program, const Stay& stay) {
  for (int i = stay.first; i <= stay.last; ++i) {
    const Action& action = program[static_cast<size_t>(i)];
    if (action.kind == ActionKind::reduce && action.block == stay.block) return i;
  }
  return Action::none;
}

void add_takeovers(const Program& program, const std::vector<Stay>& gradients,
                   std::vector<std::vector<int>>& out) {
  std::vector<const Stay*> order;
  for (const Stay& stay : gradients) order.push_back(&stay);
  std::stable_sort(order.begin(), order.end(),
                   [](const Stay* a, const Stay* b) { return a->first < b->first; });
  std::vector<const Stay*> owners;  // of memory, unless wholly taken over since
  for (const Stay* stay : order) {
    const int64_t end = stay->offset + stay->bytes;
    int wait = Action::none;
    for (const Stay* owner : owners)
      if (owner->offset < end && stay->offset < owner->offset + owner->bytes)
        wait = std::max(wait, reduction(program, *owner));
    if (wait != Action::none) out[static_cast<size_t>(stay->first)].push_back(wait);
    std::erase_if(owners, [&](const Stay* owner) {
      return stay->offset <= owner->offset && owner->offset + owner->bytes <= end;
    });
    owners.push_back(stay);
  }
}

}  // namespace

std::vector<std::vector<int>> waits(const Program& program, const std::vector<BlockTraits>& blocks,
                                    const std::vector<Stay>& gradients) {
  std::vector<std::vector<int>> out;
  WaitRules rules(blocks);
  for (size_t i = 0; i < program.size(); ++i) {
    out.push_back(rules.of(program[i]));
    rules.started(program[i], static_cast<int>(i));
  }
  add_takeovers(program, gradients, out);
  return out;
}

}  // namespace rankine
