#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "schedule/lifetimes.h"

namespace rankine {
namespace {

using Place = std::pair<int, int>;  // block or stage, micro-batch

class Activations {
 public:
  Activations(const Program& program, const std::vector<StageBlocks>& stages,
              const std::vector<ActivationBytes>& blocks)
      : program_(program), blocks_(blocks), stage_of_(blocks.size()) {
    for (const StageBlocks& stage : stages)
      for (int block = stage.first; block < stage.first + stage.count; ++block)
        stage_of_.at(static_cast<size_t>(block)) = stage;
    end_ = std::ssize(program) - 1;
    for (size_t i = 0; i < program.size(); ++i) index(program[i], static_cast<int>(i));
  }

  ActivationStays result() {
    for (size_t i = 0; i < program_.size(); ++i) {
      const Action& action = program_[i];
      const int now = static_cast<int>(i);
      if (action.kind == ActionKind::forward)
        add_forward(action, now);
      else if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_input)
        add_backward(action, now);
    }
    return std::move(out_);
  }

 private:
  void index(const Action& action, int now) {
    if (action.kind == ActionKind::update) end_ = now;
    if (!computes(action.kind)) {
      if (action.kind == ActionKind::store) stored_[{action.block, action.micro}] = now;
      if (action.kind == ActionKind::fetch) fetched_[{action.block, action.micro}] = now;
      transfers_[action] = now;
      return;
    }
    const StageBlocks& stage = stage_of_.at(static_cast<size_t>(action.block));
    expect(stage.stage == action.stage, "a block is of the stage that computes it");
    const Place key(action.block, action.micro);
    if (action.kind != ActionKind::forward) first_backward_.emplace(key, now);
    if (action.kind == ActionKind::recompute) {
      recompute_[key] = now;
    } else if (action.kind == ActionKind::forward) {
      forward_[key] = now;
      if (action.block == stage.first + stage.count - 1) outputs_[action.stage].push_back(now);
    } else {
      last_backward_[key] = now;
      if (action.block == stage.first && action.kind != ActionKind::backward_weight)
        gradients_[action.stage].push_back(now);
    }
  }

  // Just before the next but one of what makes the same kind of buffer.
  int double_buffered(const std::vector<int>& makers, int now) const {
    const auto next = std::upper_bound(makers.begin(), makers.end(), now);
    return makers.end() - next < 2 ? end_ : std::min(end_, *(next + 1) - 1);
  }
  int transfer(ActionKind kind, const Action& of) const {
    const auto found = transfers_.find(Action{of.stage, kind, of.micro});
    return found == transfers_.end() ? Action::none : found->second;
  }
  static int at(const std::map<Place, int>& indices, int block, int micro) {
    const auto found = indices.find({block, micro});
    expect(found != indices.end(), "a block before another forwards and backwards as it does");
    return found->second;
  }
  // Whether the block gets its input from the one before on this rank.
  bool follows(const Action& action) const {
    if (action.block == 0) return false;
    const int before = stage_of_[static_cast<size_t>(action.block) - 1].stage;
    return before == action.stage || before == action.stage - 1;
  }

  static void add(std::vector<Stay>& stays, Stay stay) {
    if (stay.bytes > 0) stays.push_back(stay);
  }

  // The computation behind an action, at most U.
  int next_computation(int action) const {
    int next = action + 1;
    while (next < end_ && !computes(program_[static_cast<size_t>(next)].kind)) ++next;
    return next;
  }

  void add_forward(const Action& action, int now) {
    const auto& [stage, first, count] = stage_of_[static_cast<size_t>(action.block)];
    const ActivationBytes& bytes = blocks_[static_cast<size_t>(action.block)];
    Stay stay{.block = action.block,
              .last = at(last_backward_, action.block, action.micro),
              .micro = action.micro};
    const int made = follows(action) ? at(forward_, action.block - 1, action.micro)
                                     : transfer(ActionKind::receive_activation, action);
    Stay kept = stay;
    if (stored_.contains({action.block, action.micro})) {
      add_stored(stay, bytes, made != Action::none);
      kept.last = next_computation(at(stored_, action.block, action.micro));
    }
    kept.kind = StayKind::input;
    kept.bytes = bytes.input;
    kept.first = made;
    if (made != Action::none) add(out_.saved, kept);
    kept.kind = StayKind::saved;
    kept.bytes = bytes.saved;
    kept.first = now;
    add(out_.saved, kept);
    stay.kind = StayKind::saved;
    stay.first = now;
    if (const auto again = recompute_.find({action.block, action.micro});
        again != recompute_.end()) {
      Stay part = stay;
      part.bytes = bytes.recomputed;
      part.kind = StayKind::recomputed;
      part.first = again->second;
      add(out_.saved, part);
      part.kind = StayKind::passed_over;
      part.first = part.last = now;
      add(out_.saved, part);
    }
    if (action.block != first + count - 1) return;
    stay.kind = StayKind::output;
    stay.bytes = bytes.output;
    stay.last = double_buffered(outputs_.at(stage), now);
    if (transfer(ActionKind::send_activation, action) != Action::none) add(out_.passing, stay);
  }

  // From STORE on in the tier, from FETCH on here again.
  void add_stored(Stay stay, const ActivationBytes& bytes, bool has_input) {
    Stay slot = stay;
    slot.kind = StayKind::stored;
    slot.first = at(stored_, stay.block, stay.micro);
    slot.last = at(first_backward_, stay.block, stay.micro);
    slot.bytes = bytes.saved + (has_input ? bytes.input : 0);
    add(out_.stored, slot);
    stay.first = at(fetched_, stay.block, stay.micro);
    stay.kind = StayKind::input_again;
    stay.bytes = bytes.input;
    if (has_input) add(out_.saved, stay);
    stay.kind = StayKind::saved_again;
    stay.bytes = bytes.saved;
    add(out_.saved, stay);
  }

  void add_backward(const Action& action, int now) {
    const auto& [stage, first, count] = stage_of_[static_cast<size_t>(action.block)];
    const ActivationBytes& bytes = blocks_[static_cast<size_t>(action.block)];
    Stay stay{.block = action.block,
              .first = now,
              .last = at(last_backward_, action.block, action.micro),
              .bytes = bytes.pending,
              .micro = action.micro,
              .kind = StayKind::pending};
    add(out_.passing, stay);
    const int received = transfer(ActionKind::receive_gradient, action);
    stay.kind = StayKind::output_gradient;
    stay.bytes = bytes.output;
    stay.first = received;
    if (action.block == first + count - 1 && received != Action::none) add(out_.saved, stay);
    stay.kind = StayKind::input_gradient;
    stay.bytes = bytes.input;
    stay.first = now;
    if (follows(action))
      stay.last = at(last_backward_, action.block - 1, action.micro);
    else if (action.block == first && transfer(ActionKind::send_gradient, action) != Action::none)
      stay.last = double_buffered(gradients_.at(stage), now);
    else
      return;
    add(out_.passing, stay);
  }

  const Program& program_;
  const std::vector<ActivationBytes>& blocks_;
  std::vector<StageBlocks> stage_of_;  // of each block
  int end_ = 0;                        // U, or the last action
  std::map<Place, int> forward_, first_backward_, last_backward_, recompute_;
  std::map<Place, int> stored_, fetched_;
  std::map<int, std::vector<int>> outputs_, gradients_;  // of each stage, what makes them
  std::map<Action, int> transfers_;
  ActivationStays out_;
};

}  // namespace

ActivationStays activation_stays(const Program& program, const std::vector<StageBlocks>& stages,
                                 const std::vector<ActivationBytes>& blocks) {
  return Activations(program, stages, blocks).result();
}

}  // namespace rankine
