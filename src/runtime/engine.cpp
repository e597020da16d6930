#include "runtime/engine.h"

#include "base/text.h"

namespace rankine {

Engine::Engine(Ops& ops, const ModelConfig& config, const ExecutorSetup& setup, int in_flight)
    : setup_(setup),
      model_(config),
      store_(Executor::describe(ops, model_, setup), setup.compute, setup.purpose),
      executor_(ops, model_, store_, setup, in_flight),
      plan_(in_flight) {
  store_.add_to(plan_);
  executor_.add_to(plan_);
}

void Engine::allocate() {
  arena_ = std::make_unique<Arena>(plan_, Tier::device);
  store_.bind(*arena_);
  executor_.bind(*arena_);
}

void require_memory(const MemoryPlan& plan, uint64_t limit, const std::string& remedies) {
  const uint64_t needed = plan.peak_bytes(Tier::device);
  if (limit == 0 || needed <= limit) return;
  fail(ErrorKind::resource, "the plan needs {} and the limit is {}; it is made of\n{}{}",
       format_bytes(needed), format_bytes(limit), to_table(plan, Tier::device), remedies);
}

}  // namespace rankine
