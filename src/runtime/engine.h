#pragma once
#include <memory>
#include <optional>

#include "runtime/executor.h"

namespace rankine {

// How a training step is cut and what the ranks of the data axis share.
struct StepSetup {
  Program computations = accumulation_program(1);
  ZeroPlan zero = {};
  bool strict = false;
  int64_t bucket_bytes = 0;
  Communicator* data = nullptr;  // null: this rank is alone; otherwise it outlives the engine
};

// A model, its states and its executor over one arena, built in two steps: first everything that
// can be listed, then, if the plan is accepted, the memory.
class Engine {
 public:
  Engine(Ops& ops, const ModelConfig& config, const ExecutorSetup& setup,
         const StepSetup& step = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const MemoryPlan& plan() const { return plan_; }
  const StepPlan& step_plan() const { return step_plan_; }
  // Reserves the plan; nothing of the model can be used before. Error{resource} when that fails.
  void allocate();

  const ModelConfig& config() const { return model_.config; }
  const ExecutorSetup& setup() const { return setup_; }
  ParamStore& store() { return store_; }
  const ParamStore& store() const { return store_; }
  Executor& executor() { return executor_; }
  const Arena& arena() const { return *arena_; }

 private:
  ExecutorSetup setup_;
  Model model_;
  std::unique_ptr<Communicator> alone_;
  ParamStore store_;
  StepPlan step_plan_;
  Executor executor_;
  MemoryPlan plan_;
  std::unique_ptr<Arena> arena_;
};

// Throws Error{resource} when the plan needs more than `limit` bytes (0: no limit), naming the
// largest entries and `remedies`, what would make it fit.
void require_memory(const MemoryPlan& plan, uint64_t limit, const std::string& remedies);

}  // namespace rankine
