#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "schedule/action.h"

namespace rankine {
namespace {

struct MicroProgress {
  int forwards = 0, backwards = 0;  // blocks done, or 1 for the whole stage
};

struct StageProgress {
  int blocks = 0;  // 0: computations name none
  std::map<int, MicroProgress> micros;
  std::map<ActionKind, int> transfers;  // how many of each kind

  int units() const { return std::max(blocks, 1); }
};

bool computes(const Action& action) {
  return action.kind == ActionKind::forward || action.kind == ActionKind::backward;
}

class ProgramCheck {
 public:
  ProgramCheck(const Program& program, int micros) : program_(program), micros_(micros) {
    for (const Action& action : program)
      if (computes(action)) {
        int& blocks = stages_[action.stage].blocks;
        blocks = std::max(blocks, action.block + 1);
      }
  }

  void run() {
    for (; step_ < program_.size(); ++step_) visit(program_[step_]);
    check_end();
  }

 private:
  [[noreturn]] void reject(std::string_view why) const {
    fail(ErrorKind::internal, "step program: action {} ({}) {}", step_, to_string(program_[step_]),
         why);
  }
  void demand(bool ok, std::string_view why) const {
    if (!ok) reject(why);
  }

  void visit(const Action& action) {
    demand(well_formed(action), "lacks a number its kind needs, or has one it does not know");
    demand((action.kind == ActionKind::refresh) == updated_,
           updated_ ? "comes after the update" : "comes before the update");
    if (action.kind == ActionKind::update) {
      updated_ = true;
      return;
    }
    demand(action.micro < micros_, "names a micro-batch out of range");
    const auto stage = stages_.find(action.stage);
    demand(stage != stages_.end(), "names a stage without computations");
    if (stage->second.blocks > 0)
      demand(action.block < stage->second.blocks, "names a block out of range");
    if (computes(action))
      compute(action, stage->second);
    else if (action.micro != Action::none && action.block == Action::none)
      transfer(action, stage->second);
    else
      collective(action, stage->second);
  }

  void compute(const Action& action, StageProgress& stage) {
    demand((action.block == Action::none) == (stage.blocks == 0),
           "names no block where others of its stage do");
    const int block = std::max(action.block, 0);
    MicroProgress& micro = stage.micros[action.micro];
    if (action.kind == ActionKind::forward) {
      demand(block == micro.forwards, block < micro.forwards
                                          ? "repeats a forward"
                                          : "has no forward of the block before it");
      ++micro.forwards;
      return;
    }
    demand(micro.forwards == stage.units() && block == stage.units() - 1 - micro.backwards,
           "has no forward before it, or repeats a backward, or is not the next block");
    ++micro.backwards;
  }

  void transfer(const Action& action, StageProgress& stage) {
    demand(seen_.insert(action).second, "repeats a transfer");
    ++stage.transfers[action.kind];
    const MicroProgress& micro = stage.micros[action.micro];
    switch (action.kind) {
      case ActionKind::receive_activation:
        demand(action.stage > 0, "receives where no stage is before it");
        demand(micro.forwards == 0, "comes after the forward that consumes it");
        break;
      case ActionKind::send_activation:
        demand(micro.forwards == stage.units(), "comes before the forward that makes it");
        break;
      case ActionKind::receive_gradient:
        demand(micro.backwards == 0, "comes after the backward that consumes it");
        break;
      default:
        demand(action.stage > 0, "sends where no stage is before it");
        demand(micro.backwards == stage.units(), "comes before the backward that makes it");
    }
  }

  void collective(const Action& action, StageProgress& stage) {
    const std::pair block(action.stage, action.block);
    switch (action.kind) {
      case ActionKind::gather:
        demand(gathered_.emplace(block, step_).second, "gathers what is gathered already");
        break;
      case ActionKind::release:
        demand(gathered_.erase(block) == 1, "releases what is not gathered");
        break;
      case ActionKind::reduce: {
        const MicroProgress& micro = stage.micros[action.micro];
        const int needed = stage.blocks == 0 ? 1 : stage.blocks - action.block;
        demand(micro.backwards >= needed, "comes before the backward it reduces");
        demand(seen_.insert(action).second, "repeats a reduction");
        break;
      }
      default:
        demand(seen_.insert(action).second, "repeats a refresh");
    }
  }

  void check_end() {
    if (stages_.empty() && micros_ > 0)
      fail(ErrorKind::internal, "step program: micro-batch 0 is never finished");
    for (auto& [stage, progress] : stages_) {
      for (int micro = 0; micro < micros_; ++micro)
        if (progress.micros[micro].backwards != progress.units())
          fail(ErrorKind::internal, "step program: micro-batch {} is never finished on stage {}",
               micro, stage);
      check_transfers(stage, progress);
    }
    if (!gathered_.empty()) {
      step_ = gathered_.begin()->second;
      reject("is never released");
    }
    if (!updated_) fail(ErrorKind::internal, "step program: the update is missing");
  }

  void check_transfers(int stage, StageProgress& progress) const {
    using Kind = ActionKind;
    for (const auto& [there, back] : {std::pair(Kind::send_activation, Kind::receive_gradient),
                                      std::pair(Kind::receive_activation, Kind::send_gradient)}) {
      const int first = progress.transfers[there], second = progress.transfers[back];
      if (first != second || (first != 0 && first != micros_))
        fail(ErrorKind::internal,
             "step program: stage {} has {} like {} and {} like {}; either all {} micro-batches "
             "have "
             "both or none has",
             stage, first, to_string({stage, there, 0}), second, to_string({stage, back, 0}),
             micros_);
    }
  }

  const Program& program_;
  int micros_;
  size_t step_ = 0;
  bool updated_ = false;
  std::map<int, StageProgress> stages_;
  std::map<std::pair<int, int>, size_t> gathered_;  // (stage, block) -> its GATHER
  std::set<Action> seen_;                           // what may come once
};

}  // namespace

void check(const Program& program, int micros) {
  ProgramCheck(program, micros).run();
}

}  // namespace rankine
