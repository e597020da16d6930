#include "runtime/engine.h"

#include <algorithm>

#include "base/text.h"
#include "model/block_parameters.h"

namespace rankine {
namespace {

StoreSetup store_setup(Ops& ops, const ExecutorSetup& setup, const StepSetup& step) {
  return {.compute = setup.compute,
          .purpose = setup.purpose,
          .zero = step.zero,
          .micros = micros_of(step.schedule),
          .strict = step.strict,
          .offload = step.offload,
          .apart = !ops.device().is_host()};
}

StateRanks state_ranks(const Mesh& mesh) {
  return {*mesh.data, mesh.tensor.get(), mesh.replicas.get()};
}

std::unique_ptr<Mesh> mesh_of_one() {
  const auto world = make_self_world();
  return std::make_unique<Mesh>(*world, MeshShape{});
}

TensorSplit split_of(const Mesh& mesh, const StepSetup& step) {
  return {mesh.tensor->rank(), mesh.tensor->size(),
          step.sequence_parallel && mesh.tensor->size() > 1};
}

ModelPart checked_part(const ModelConfig& config, const ExecutorSetup& setup, const StepSetup& step,
                       const Mesh& mesh) {
  const TensorSplit split = split_of(mesh, step);
  check(config, split, setup.shape.rows());
  return model_part(config, step, mesh.at(Axis::pipeline), split);
}

}  // namespace

ModelPart model_part(const ModelConfig& config, const StepSetup& step, int pipeline_rank,
                     const TensorSplit& split) {
  const std::vector<int> rank_of_stage = step.schedule.rank_of_stage;
  const std::vector<int64_t> layers = stage_layers_of(config, step.schedule, step.stage_layers);
  ModelPart part;
  part.split = split;
  part.recompute = step.recompute;
  part.recompute_layers = step.recompute_layers;
  int64_t first = 0;
  for (size_t stage = 0; stage < layers.size(); ++stage) {
    const int64_t count =
        layers[stage] + (stage == 0 ? 1 : 0) + (stage + 1 == layers.size() ? 1 : 0);
    if (rank_of_stage[stage] == pipeline_rank) part.stages.push_back({first, count});
    first += count;
  }
  // Gradients that leave after every micro-batch must not meet those of another one, which they
  // would where a pipeline brings its head's and its embedding's backward apart.
  const bool apart = layers.size() > 1 &&
                     (reduces_every_micro(step.zero) || step.offload.optimizer != Offload::none);
  part.tied_copy =
      config.tied && (step.strict || apart || rank_of_stage.front() != rank_of_stage.back());
  return part;
}

std::optional<TiedCopy> Engine::tied_copy(const StepSetup& step) const {
  const ModelConfig& config = model_.config;
  if (!model_.part.tied_copy) return {};
  const TensorSplit& split = model_.part.split;
  const auto side = [&](const std::vector<ParamSpec>& specs, int pipeline_rank) {
    MeshShape::Coordinate at = mesh_.coordinate;
    at[static_cast<size_t>(Axis::pipeline)] = pipeline_rank;
    at[static_cast<size_t>(Axis::data)] = 0;
    const int owners = step.zero.optimizer == Held::shard ? mesh_.data->size() : 1;
    const int64_t unit = shard_unit(step.offload, setup_.compute);
    return TiedCopy::Side{ParamLayout::block_elements(specs, owners, unit) / owners,
                          mesh_.shape.group(Axis::data, mesh_.shape.rank(at))};
  };
  TiedCopy tied;
  tied.elements = split.stored_vocabulary(config) * config.hidden;
  tied.owners = step.zero.optimizer == Held::shard ? mesh_.data->size() : 1;
  tied.embedding =
      side(embedding_parameters(config, split).specs, step.schedule.rank_of_stage.front());
  tied.head = side(head_parameters(config, split, true).specs, step.schedule.rank_of_stage.back());
  if (model_.part.stages.front().first == 0) tied.embedding_block = 0;
  const ModelPart::Stage& last = model_.part.stages.back();
  if (last.first + last.count == Model::block_count(config))
    tied.head_block = static_cast<int>(model_.blocks.size()) - 1;
  tied.data_rank = mesh_.data->rank();
  tied.world = mesh_.states.get();
  const bool holds = tied.embedding_block != TiedCopy::none || tied.head_block != TiedCopy::none;
  return holds ? std::optional(tied) : std::nullopt;
}

Engine::Engine(Ops& ops, const ModelConfig& config, const ExecutorSetup& setup,
               const StepSetup& step)
    : setup_(setup),
      alone_(step.mesh == nullptr ? mesh_of_one() : nullptr),
      mesh_(step.mesh == nullptr ? *alone_ : *step.mesh),
      model_(config, checked_part(config, setup, step, mesh_)),
      tied_(tied_copy(step)),
      store_(Executor::describe(ops, model_, setup), store_setup(ops, setup, step), state_ranks(mesh_),
             tied_ ? &*tied_ : nullptr),
      step_plan_({.schedule = step.schedule,
                  .pipeline_rank = mesh_.at(Axis::pipeline),
                  .stages = model_.part.stages,
                  .zero = store_.setup().zero,
                  .every_micro = store_.reduces_every_micro(),
                  .bucket_bytes = step.bucket_bytes,
                  .gather_window = step.gather_window,
                  .offload = step.offload,
                  .compute = setup.compute,
                  .training = setup.purpose == Purpose::training},
                 Executor::describe(ops, model_, setup), store_.layout()),
      executor_(ops, model_, store_, setup, step_plan_, micros_of(step.schedule),
                {.tensor = mesh_.tensor.get(),
                 .activations = mesh_.pipeline.get(),
                 .gradients = mesh_.pipeline_gradients.get(),
                 .data_rank = mesh_.data->rank(),
                 .data_ranks = mesh_.data->size()},
                step.offload) {
  mesh_.start_behind(ops.queue());
  store_.reserve_pools(step_plan_.gathered_bytes, step_plan_.gradient_bytes);
  store_.add_to(plan_);
  executor_.add_to(plan_);
}

void Engine::allocate() {
  arena_ = std::make_unique<Arena>(plan_, Tier::device, executor_.ops().device());
  host_arena_ = std::make_unique<Arena>(plan_, Tier::host, executor_.ops().device());
  store_.bind(*arena_, *host_arena_, executor_.ops());
  executor_.bind(*arena_, *host_arena_);
}

namespace {

uint64_t in_memory(const MemoryPlan& plan) {
  return plan.peak_bytes(Tier::device) + plan.peak_bytes(Tier::host);
}

void require_tier(const MemoryPlan& plan, uint64_t needed, uint64_t limit, const char* what,
                  const std::string& remedies) {
  if (limit == 0 || needed <= limit) return;
  fail(ErrorKind::resource, "the plan needs {} of {} and the limit is {}; it is made of\n{}{}",
       format_bytes(needed), what, format_bytes(limit), memory_table(plan), remedies);
}

}  // namespace

std::string memory_table(const MemoryPlan& plan) {
  if (plan.peak_bytes(Tier::host) + plan.peak_bytes(Tier::disk) == 0)
    return to_table(plan, Tier::device);
  std::string out;
  for (const auto& [tier, name] :
       {std::pair{Tier::device, "device"}, {Tier::host, "host"}, {Tier::disk, "disk"}})
    if (plan.peak_bytes(tier) > 0) out += fmt::format(" {}\n{}", name, to_table(plan, tier));
  return out;
}

bool MemoryLimits::hold(const MemoryPlan& plan) const {
  const auto fits = [](uint64_t needed, uint64_t limit) { return limit == 0 || needed <= limit; };
  return fits(plan.peak_bytes(Tier::device), device) && fits(plan.peak_bytes(Tier::host), host) &&
         fits(in_memory(plan), all);
}

void require_memory(const MemoryPlan& plan, const MemoryLimits& limits,
                    const std::string& remedies) {
  require_tier(plan, plan.peak_bytes(Tier::device), limits.device, "device memory", remedies);
  require_tier(plan, plan.peak_bytes(Tier::host), limits.host, "host memory", remedies);
  require_tier(plan, in_memory(plan), limits.all, "memory", remedies);
}

}  // namespace rankine
