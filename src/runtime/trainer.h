#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "runtime/engine.h"
#include "state/optimizer.h"

namespace rankine {

struct StepReport {
  int64_t step = 0;
  double loss = 0;       // mean over the valid tokens, nats; NaN without any
  double grad_norm = 0;  // global, before clipping, of the unscaled gradient; NaN likewise
  double lr = 0, loss_scale = 1;
  int64_t tokens = 0;    // valid ones; without any nothing is computed and nothing changes
  bool skipped = false;  // a non-finite gradient: the weights were left alone
  // Updates skipped in a row, up to this one, for what no smaller loss scale cures.
  int64_t hopeless = 0;
};

// One optimizer step at a time over the executor's step program, all ranks of the mesh together.
// The loss is the sum over valid tokens divided by their global number, known before backward;
// gradients are only ever summed. What several ranks see alike, one of them counts. From the step
// that OffloadSetup::delayed_update names on, the update of a step runs beside the next one, which
// computes with the parameters before it.
class Trainer {
 public:
  struct Setup {
    OptimizerOptions optimizer;
    int64_t steps = 0;  // the whole run's, for the learning rate
    uint64_t seed = 0;
    bool dynamic_loss_scale = false;  // f16
  };
  Trainer(Engine& engine, Setup setup);
  ~Trainer();  // waits for what brings reports
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Puts a step into the device's queue. Steps count from 1; ids and targets hold all micro-batches
  // of this rank, one behind another, and may change afterwards; `first_keys` likewise, with a
  // document mask. At most two steps are under way. Allocates nothing on one rank.
  void start(int64_t step, double lr, std::span<const int32_t> ids,
             std::span<const int32_t> targets, std::span<const int32_t> first_keys = {});
  // The oldest report not given yet, the same on all ranks, which call it together. Where the
  // device is not the processor, the newest step's is left until the next one has started, unless
  // `wait`.
  std::optional<StepReport> finished(bool wait);
  double learning_rate(int64_t step) const {
    return rankine::learning_rate(setup_.optimizer, step, setup_.steps);
  }
  // Both at once, with the schedule's learning rate.
  StepReport step(int64_t step, std::span<const int32_t> ids, std::span<const int32_t> targets,
                  std::span<const int32_t> first_keys = {});
  // The same with a learning rate of the caller's.
  StepReport step(int64_t step, double lr, std::span<const int32_t> ids,
                  std::span<const int32_t> targets, std::span<const int32_t> first_keys = {});

  // Where the first value that is not finite arises in a step of these inputs, "" when none does:
  // runs it once more without an update. The same on all ranks, which call it together and do not
  // train on.
  std::string diagnose(const StepReport& report, std::span<const int32_t> ids,
                       std::span<const int32_t> targets, std::span<const int32_t> first_keys = {});

  struct State {
    int64_t updates = 0;  // optimizer steps really made
    LossScale::State loss_scale;
    bool lags = false;     // the last of them is not yet in what the next step computes with
    int64_t hopeless = 0;  // StepReport's
  };
  // Behind the last report that was given.
  State state() const { return {state_.updates, state_.loss_scale, store_.lags(), hopeless_}; }
  void restore(const State& state);

 private:
  StepInputs inputs_of(const StepReport& report, std::span<const int32_t> ids,
                       std::span<const int32_t> targets, std::span<const int32_t> first_keys) const;
  struct Pending {
    StepReport report;
    StepState state;  // what the step decided
    std::vector<double> losses;
    Mark mark;  // behind what brings both
  };
  void update(Pending& pending);
  void complete(Pending& pending);
  void write_state(const StepState& state);
  Pending& pending(int64_t number) { return pending_[static_cast<size_t>(number % 2)]; }
  // Adds the parts of an exact sum over all ranks.
  void add_over_ranks(std::span<int64_t> parts, std::string_view tag);

  const Mesh& mesh_;
  Executor& executor_;
  ParamStore& store_;
  Setup setup_;
  StepState state_;       // of the last report given
  bool written_ = false;  // the device has a state
  int64_t hopeless_ = 0;
  std::array<Pending, 2> pending_;
  int64_t started_ = 0, reported_ = 0;
};

}  // namespace rankine
