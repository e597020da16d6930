#include "runtime/engine.h"

#include <algorithm>

#include "base/text.h"
#include "comm/world.h"

namespace rankine {

namespace {

int micros_of(const Program& program) {
  int micros = 0;
  for (const Action& action : program) micros = std::max(micros, action.micro + 1);
  return micros;
}

StoreSetup store_setup(const ExecutorSetup& setup, const StepSetup& step) {
  return {.compute = setup.compute,
          .purpose = setup.purpose,
          .zero = step.zero,
          .micros = micros_of(step.computations),
          .strict = step.strict};
}

}  // namespace

Engine::Engine(Ops& ops, const ModelConfig& config, const ExecutorSetup& setup,
               const StepSetup& step)
    : setup_(setup),
      model_(config),
      alone_(step.data == nullptr ? make_self_world()->group({0}) : nullptr),
      store_(Executor::describe(ops, model_, setup), store_setup(setup, step),
             step.data == nullptr ? *alone_ : *step.data),
      step_plan_({.computations = step.computations,
                  .zero = store_.setup().zero,
                  .every_micro = store_.reduces_every_micro(),
                  .bucket_bytes = step.bucket_bytes,
                  .compute = setup.compute},
                 Executor::describe(ops, model_, setup), store_.layout()),
      executor_(ops, model_, store_, setup, step_plan_, micros_of(step.computations),
                peak_in_flight(step.computations)),
      plan_(peak_in_flight(step.computations)) {
  store_.reserve_pools(step_plan_.gathered_bytes, step_plan_.gradient_bytes);
  store_.add_to(plan_);
  executor_.add_to(plan_);
}

void Engine::allocate() {
  arena_ = std::make_unique<Arena>(plan_, Tier::device);
  store_.bind(*arena_, executor_.ops());
  executor_.bind(*arena_);
}

void require_memory(const MemoryPlan& plan, uint64_t limit, const std::string& remedies) {
  const uint64_t needed = plan.peak_bytes(Tier::device);
  if (limit == 0 || needed <= limit) return;
  fail(ErrorKind::resource, "the plan needs {} and the limit is {}; it is made of\n{}{}",
       format_bytes(needed), format_bytes(limit), to_table(plan, Tier::device), remedies);
}

}  // namespace rankine
