#pragma once
#include <memory>
#include <optional>

#include "comm/world.h"
#include "runtime/executor.h"

namespace rankine {

// How a training step is cut and who shares it.
struct StepSetup {
  Schedule schedule = one_stage(accumulation_program(1));
  std::vector<int64_t> stage_layers = {};  // of each stage; empty: as even as can be
  ZeroPlan zero = {};
  bool strict = false;
  bool sequence_parallel = false;
  int64_t bucket_bytes = 0;
  int gather_window = 2;  // computations over which gathered parameters stay
  Recompute recompute = Recompute::none;
  int64_t recompute_layers = -1;  // of each stage, the first so many; -1: all
  OffloadSetup offload = {};
  const Mesh* mesh = nullptr;  // null: this rank is alone; otherwise it outlives the engine
};

// The blocks of a pipeline rank, as the schedule and the layers of its stages say.
ModelPart model_part(const ModelConfig& config, const StepSetup& step, int pipeline_rank,
                     const TensorSplit& split);

// A model, its states and its executor over one arena, built in two steps: first everything that
// can be listed, then, if the plan is accepted, the memory.
class Engine {
 public:
  // Error{usage} when the model cannot be split so.
  Engine(Ops& ops, const ModelConfig& config, const ExecutorSetup& setup,
         const StepSetup& step = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const MemoryPlan& plan() const { return plan_; }
  const StepPlan& step_plan() const { return step_plan_; }
  // Reserves the plan; nothing of the model can be used before. Error{resource} when that fails.
  void allocate();

  const ModelConfig& config() const { return model_.config; }
  const ModelPart& part() const { return model_.part; }
  const ExecutorSetup& setup() const { return setup_; }
  const Mesh& mesh() const { return mesh_; }
  ParamStore& store() { return store_; }
  const ParamStore& store() const { return store_; }
  Executor& executor() { return executor_; }
  const Executor& executor() const { return executor_; }
  // Of this rank so far.
  TierTraffic tier_traffic() const { return store_.tier_traffic() + executor_.tier_traffic(); }
  const Arena& arena() const { return *arena_; }
  const Arena& host_arena() const { return *host_arena_; }

 private:
  std::optional<TiedCopy> tied_copy(const StepSetup& step) const;

  ExecutorSetup setup_;
  std::unique_ptr<Mesh> alone_;
  const Mesh& mesh_;
  Model model_;
  std::optional<TiedCopy> tied_;
  MemoryPlan plan_;
  std::unique_ptr<Arena> arena_, host_arena_;  // outlive what may still copy from and to them
  ParamStore store_;
  StepPlan step_plan_;
  Executor executor_;
};

// Bytes of one rank's memory, 0: no limit.
struct MemoryLimits {
  uint64_t all = 0, device = 0, host = 0;
  bool hold(const MemoryPlan& plan) const;
};
// Throws Error{resource} unless the plan keeps to the limits, naming its parts and `remedies`, what
// would make it fit.
void require_memory(const MemoryPlan& plan, const MemoryLimits& limits,
                    const std::string& remedies);
// Tables of all tiers that the plan uses.
std::string memory_table(const MemoryPlan& plan);

}  // namespace rankine
