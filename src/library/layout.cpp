#include "library/layout.h"

#include <fmt/core.h>

#include <algorithm>

namespace rankine {

int kv_replicas(const ParallelOptions& options, const ModelConfig& config) {
  TensorSplit split;
  split.ranks = static_cast<int>(options.tensor_parallel);
  check(config, split, split.ranks);
  return split.kv_replicas(config);
}

StepSetup balanced_step(const ParallelOptions& options, int micros, const Mesh& mesh,
                        const ModelConfig& config, const Ops& ops, MicroShape shape) {
  StepSetup step = step_setup(options, micros, mesh);
  if (step.stage_layers.empty())
    step.stage_layers = balanced_layers(Model(config).describe(ops, shape, DType::f32),
                                        static_cast<int>(step.schedule.rank_of_stage.size()));
  return step;
}

PlannedLayout::PlannedLayout(const LayoutRequest& request, Ops& ops) : shape_(request.shape) {
  const int replicas = kv_replicas(request.options, request.config);
  for (int p = 0; p < shape_.degree_of(Axis::pipeline); ++p) {
    MeshShape::Coordinate at{};
    at[static_cast<size_t>(Axis::pipeline)] = p;
    meshes_.push_back(std::make_unique<Mesh>(Mesh::planned(shape_, shape_.rank(at), replicas)));
    const StepSetup step = balanced_step(request.options, request.micros, *meshes_.back(),
                                         request.config, ops, request.executor.shape);
    schedule_ = step.schedule;
    engines_.push_back(std::make_unique<Engine>(ops, request.config, request.executor, step));
  }
}

std::vector<RankProgram> PlannedLayout::programs() const {
  std::vector<RankProgram> out;
  for (int r = 0; r < shape_.world(); ++r) {
    const MeshShape::Coordinate c = shape_.coordinate(r);
    const StepPlan& plan = engine_of(c)->step_plan();
    out.push_back({{.pipeline = c[0], .data = c[1], .tensor = c[2]},
                   plan.program,
                   plan.traits,
                   plan.placed()});
  }
  return out;
}

std::vector<RankBlocks> PlannedLayout::blocks() const {
  std::vector<RankBlocks> out;
  for (int r = 0; r < shape_.world(); ++r) {
    const Engine& engine = of_rank(r);
    out.push_back({engine.executor().descriptions(), engine.step_plan().traits});
  }
  return out;
}

uint64_t PlannedLayout::most_bytes() const {
  uint64_t most = 0;
  for (const auto& engine : engines_)
    most = std::max(
        most, engine->plan().peak_bytes(Tier::device) + engine->plan().peak_bytes(Tier::host));
  return most;
}

std::string blocks_text(const Engine& engine) {
  std::string out;
  const int64_t layers = engine.config().layers;
  for (const ModelPart::Stage& stage : engine.part().stages) {
    const int64_t first = std::max<int64_t>(stage.first, 1) - 1;
    const int64_t last = std::min(stage.first + stage.count, layers + 1) - 2;
    std::string text = stage.first == 0 ? "embedding" : "";
    if (last >= first) text += text.empty() ? "" : ", ";
    if (last > first) text += fmt::format("layers {}-{}", first, last);
    if (last == first) text += fmt::format("layer {}", first);
    if (stage.first + stage.count == Model::block_count(engine.config()))
      text += text.empty() ? "head" : ", head";
    out += (out.empty() ? "" : "; ") + text;
  }
  return out;
}

std::string layout_line(const ParallelOptions& o, int world) {
  return fmt::format("data {} x tensor {}{} x pipeline {}{}, ZeRO stage {}",
                     data_degree_of(o, world), o.tensor_parallel,
                     o.sequence_parallel ? " (sequence parallel)" : "", o.pipeline_parallel,
                     o.pipeline_parallel > 1 ? " (" + o.schedule + ")" : "", o.zero);
}

std::string stage_layers_text(const ModelConfig& config, const StepSetup& step) {
  std::string out;
  for (const int64_t layers : stage_layers_of(config, step.schedule, step.stage_layers))
    out += (out.empty() ? "" : ",") + std::to_string(layers);
  return out;
}

}  // namespace rankine
