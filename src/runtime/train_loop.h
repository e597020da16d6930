#pragma once
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "data/loader.h"
#include "machine/stop_signal.h"
#include "options/run_options.h"
#include "runtime/engine.h"
#include "runtime/metrics.h"
#include "runtime/run_state.h"

namespace rankine {

// What the loop works with; all of it outlives the loop.
struct TrainLoopParts {
  Engine& engine;
  Trainer& trainer;
  const Loader& loader;
  const RunOptions& options;  // batch sizes derived, output and metrics filled in
  Log& log;
  const StopSignal& stop;
  double peak_flops = 0;               // measured, of the run's dtype, by all ranks together
  const ExtraFiles& checkpoint_files;  // that each checkpoint carries
};

// Steps, log lines, metrics, validations and checkpoints of one run, from `state.step` on. All
// ranks go through it together; the first alone writes metrics, and what it says decides when to
// stop.
class TrainLoop {
 public:
  TrainLoop(TrainLoopParts parts, RunState state);

  // Runs until the last step or a stop signal; the newest state is saved in either case. Returns
  // the signal's number, 0 when the run is complete. Error{data} when the gradient is not finite
  // for too long, and in place of saving states that are not.
  int run();
  const RunState& state() const { return state_; }

 private:
  const Mesh& mesh() const { return parts_.engine.mesh(); }
  void fill(int64_t step);  // the buffers
  void one_step(int64_t step);
  void report(const StepReport& report);
  bool must_know(int64_t step) const;
  void give_up(const StepReport& report);
  std::optional<double> validate();  // the loss
  void save();
  void require_finite(std::span<const TensorGroup> groups) const;
  int agreed_signal();
  void remove_old_checkpoints() const;
  void log(const StepMetrics& metrics);
  WindowRow rows_from(int64_t token);  // of the buffers
  bool due(int64_t interval, int64_t step) const;

  TrainLoopParts parts_;
  RunState state_;
  MetricsFile metrics_;
  std::vector<int32_t> ids_, targets_, first_keys_;  // the last with a document mask only
  int64_t saved_step_, first_step_;
  // Of the steps under way, by number.
  struct Begin {
    double seconds = 0;
    AxisTraffic traffic;
    TierTraffic tiers;
  };
  std::array<Begin, 2> begins_;
  double reported_at_ = 0;  // when the last report came
  double seconds_ = 0;      // in steps of this process
  bool skipped_ = false;    // the newest step
};

// Fills every state of the engine and trainer from a checkpoint; returns its state.
RunState resume(const std::filesystem::path& checkpoint, Engine& engine, Trainer& trainer);

}  // namespace rankine
