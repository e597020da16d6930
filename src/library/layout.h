#pragma once
#include <memory>
#include <string>
#include <vector>

#include "options/parallel_options.h"
#include "planner/step_costs.h"
#include "runtime/engine.h"
#include "runtime/step_setup.h"
#include "schedule/simulate.h"

// A run's layout over all its ranks, planned in one process before any of them computes.
namespace rankine {

// step_setup() with stages balanced by the planner where --stage-layers leaves them open.
StepSetup balanced_step(const ParallelOptions& options, int micros, const Mesh& mesh,
                        const ModelConfig& config, const Ops& ops, MicroShape shape);

// The tensor axis's neighbours that hold the same key/value heads.
int kv_replicas(const ParallelOptions& options, const ModelConfig& config);

struct LayoutRequest {
  ParallelOptions options;
  MeshShape shape;
  int micros = 1;
  ModelConfig config;
  ExecutorSetup executor;
};

// One planned engine for each pipeline rank: the others of its data and tensor groups are like it.
class PlannedLayout {
 public:
  PlannedLayout(const LayoutRequest& request, Ops& ops);

  const Engine& of_rank(int rank) const { return *engine_of(shape_.coordinate(rank)); }
  const Engine& of_stage_rank(int pipeline) const {
    return *engines_[static_cast<size_t>(pipeline)];
  }
  const MeshShape& shape() const { return shape_; }
  const Schedule& schedule() const { return schedule_; }
  // Every rank's program, in order of ranks.
  std::vector<RankProgram> programs() const;
  std::vector<RankBlocks> blocks() const;  // likewise
  uint64_t most_bytes() const;             // of the plan that needs most

 private:
  const Engine* engine_of(const MeshShape::Coordinate& c) const {
    return engines_[static_cast<size_t>(c[static_cast<size_t>(Axis::pipeline)])].get();
  }
  MeshShape shape_;
  Schedule schedule_;
  std::vector<std::unique_ptr<Mesh>> meshes_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

// "layers 0-4 and the embedding": what a rank computes.
std::string blocks_text(const Engine& engine);
// "data 2 x tensor 1 x pipeline 2 (1f1b), ZeRO stage 1".
std::string layout_line(const ParallelOptions& options, int world);
// "5,6,6,5": the layers of each stage of a step.
std::string stage_layers_text(const ModelConfig& config, const StepSetup& step);

}  // namespace rankine
