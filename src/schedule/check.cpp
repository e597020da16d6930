#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "schedule/passes.h"

namespace rankine {
namespace {

struct MicroProgress {
  int forwards = 0, backwards = 0;  // blocks done, or 1 for the whole stage; B and I alike
  std::vector<int> open = {};       // blocks with an I whose W is to come, in order
  int recomputed = Action::none;    // the block of the latest R
};

struct StageProgress {
  int first = 0, blocks = 0;  // 0 blocks: computations name none
  std::map<int, MicroProgress> micros = {};
  std::map<ActionKind, int> transfers = {};  // how many of each kind

  int units() const { return std::max(blocks, 1); }
  int end() const { return first + blocks; }
  bool holds(int block) const { return blocks == 0 || (first <= block && block < end()); }
};

class ProgramCheck {
 public:
  ProgramCheck(const Program& program, int micros) : program_(program), micros_(micros) {
    for (const Action& action : program)
      if (computes(action.kind)) stages_[action.stage];
    for (const auto& [stage, first, count] : stage_blocks(program)) {
      stages_[stage].first = first;
      stages_[stage].blocks = count;
    }
  }

  void run() {
    check_blocks();
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

  // Each stage's blocks follow those of the stage before, from 0.
  void check_blocks() const {
    int next = 0;
    for (const auto& [number, stage] : stages_) {
      if (stage.blocks == 0) continue;
      if (stage.first != next)
        fail(ErrorKind::internal,
             "step program: the blocks of stage {} begin with {} where {} is the next", number,
             stage.first, next);
      next = stage.end();
    }
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
    if (action.block != Action::none)
      demand(stage->second.holds(action.block), "names a block out of range");
    if (computes(action.kind))
      compute(action, stage->second);
    else if (action.micro != Action::none && action.block == Action::none)
      transfer(action, stage->second);
    else
      collective(action, stage->second);
  }

  void compute(const Action& action, StageProgress& stage) {
    demand((action.block == Action::none) == (stage.blocks == 0),
           "names no block where others of its stage do");
    MicroProgress& micro = stage.micros[action.micro];
    if (action.kind == ActionKind::forward) {
      const int block = action.block == Action::none ? 0 : action.block - stage.first;
      demand(block == micro.forwards, block < micro.forwards
                                          ? "repeats a forward"
                                          : "has no forward of the block before it");
      ++micro.forwards;
      return;
    }
    if (action.kind == ActionKind::backward_weight) {
      demand(!micro.open.empty() && micro.open.front() == action.block,
             "has no backward of its input before it, or repeats one, or is not the next block");
      micro.open.erase(micro.open.begin());
      return;
    }
    const int next = stage.blocks == 0 ? Action::none : stage.end() - 1 - micro.backwards;
    if (action.kind == ActionKind::recompute) {
      check_fetched(action);
      demand(micro.forwards == stage.units() && action.block == next &&
                 micro.recomputed != action.block,
             "does not stand once between the forward and the backward of its block");
      micro.recomputed = action.block;
      return;
    }
    check_fetched(action);
    demand(
        micro.forwards == stage.units() && micro.backwards < stage.units() && action.block == next,
        "has no forward before it, or repeats a backward, or is not the next block");
    ++micro.backwards;
    if (action.kind == ActionKind::backward_input) micro.open.push_back(action.block);
  }

  // What a block keeps of a micro-batch is here, or back again.
  void check_fetched(const Action& reader) const {
    const auto seen = [&](ActionKind kind) {
      return seen_.contains({reader.stage, kind, reader.micro, reader.block});
    };
    demand(!seen(ActionKind::store) || seen(ActionKind::fetch), "reads what is not fetched");
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
      case ActionKind::load:
        demand(gathered_.emplace(block, step_).second, "loads what is here already");
        loaded_.insert(block);
        break;
      case ActionKind::gather:
        demand(loaded_.erase(block) == 1 || gathered_.emplace(block, step_).second,
               "gathers what is gathered already");
        break;
      case ActionKind::release:
        loaded_.erase(block);
        demand(gathered_.erase(block) == 1, "releases what is not gathered");
        break;
      case ActionKind::store:
      case ActionKind::fetch:
        tier_copy(action, stage);
        break;
      case ActionKind::reduce: {
        const MicroProgress& micro = stage.micros[action.micro];
        const int needed = stage.blocks == 0 ? 1 : stage.end() - action.block;
        const int awaited = stage.blocks == 0 ? Action::none : action.block;
        demand(micro.backwards >= needed &&
                   std::find(micro.open.begin(), micro.open.end(), awaited) == micro.open.end(),
               "comes before the backward it reduces");
        demand(seen_.insert(action).second, "repeats a reduction");
        break;
      }
      default:
        demand(seen_.insert(action).second, "repeats a refresh");
    }
  }

  void tier_copy(const Action& action, const StageProgress& stage) {
    const auto micro = stage.micros.find(action.micro);
    demand(micro != stage.micros.end() && stage.blocks > 0 &&
               micro->second.forwards > action.block - stage.first,
           "comes before the forward of its block");
    demand(micro->second.backwards < stage.end() - action.block &&
               micro->second.recomputed != action.block,
           "comes after the backward of its block");
    const Action stored{action.stage, ActionKind::store, action.micro, action.block};
    demand(action.kind == ActionKind::store || seen_.contains(stored),
           "fetches what is not stored");
    demand(seen_.insert(action).second, "repeats a copy");
  }

  void check_end() {
    const std::string end = fmt::format("step program: at action {} (its end)", step_);
    if (stages_.empty() && micros_ > 0)
      fail(ErrorKind::internal, "{} micro-batch 0 is never finished", end);
    for (auto& [stage, progress] : stages_) {
      for (int micro = 0; micro < micros_; ++micro)
        if (progress.micros[micro].backwards != progress.units() ||
            !progress.micros[micro].open.empty())
          fail(ErrorKind::internal, "{} micro-batch {} is never finished on stage {}", end, micro,
               stage);
      check_transfers(stage, progress);
    }
    if (!gathered_.empty()) {
      step_ = gathered_.begin()->second;
      reject("is never released");
    }
    if (!updated_) fail(ErrorKind::internal, "{} the update is missing", end);
  }

  void check_transfers(int stage, StageProgress& progress) const {
    using Kind = ActionKind;
    for (const auto& [there, back] : {std::pair(Kind::send_activation, Kind::receive_gradient),
                                      std::pair(Kind::receive_activation, Kind::send_gradient)}) {
      const int first = progress.transfers[there], second = progress.transfers[back];
      if (first != second || (first != 0 && first != micros_))
        fail(ErrorKind::internal,
             "step program: stage {} has {} like {} and {} like {}; either all {} micro-batches "
             "have both or none has",
             stage, first, to_string({stage, there, 0}), second, to_string({stage, back, 0}),
             micros_);
    }
  }

  const Program& program_;
  int micros_;
  size_t step_ = 0;
  bool updated_ = false;
  std::map<int, StageProgress> stages_;
  std::map<std::pair<int, int>, size_t> gathered_;  // (stage, block) -> its LOAD or GATHER
  std::set<std::pair<int, int>> loaded_;            // of those, LOAD without GATHER yet
  std::set<Action> seen_;                           // what may come once
};

}  // namespace

void check(const Program& program, int micros) {
  ProgramCheck(program, micros).run();
}

}  // namespace rankine
