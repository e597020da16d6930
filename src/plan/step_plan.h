#pragma once
#include <span>
#include <vector>

#include "model/model.h"
#include "schedule/lifetimes.h"
#include "schedule/passes.h"
#include "schedule/pipeline.h"
#include "state/offload.h"
#include "state/param_layout.h"
#include "state/zero_plan.h"

namespace rankine {

// Layers of each stage of a schedule, as asked for or as even as can be, the first stages with
// more. Error{usage} unless they are one number per stage, sum up to the model's layers, and leave
// no stage empty.
std::vector<int64_t> stage_layers_of(const ModelConfig& config, const Schedule& schedule,
                                     const std::vector<int64_t>& asked);

// What a rank does in a step and where everything that comes and goes lies meanwhile. A pure
// function of its request; the same for all ranks of the data and tensor axes.
struct StepPlan {
  struct Request {
    Schedule schedule;
    int pipeline_rank = 0;
    std::vector<ModelPart::Stage> stages = {};  // this rank's, as the schedule numbers them
    ZeroPlan zero = {};
    bool every_micro = false;  // gradients leave after every micro-batch
    int64_t bucket_bytes = 0;  // f32 gradients that are sent together; 0: each block at once
    int gather_window = 2;     // computations over which gathered parameters stay
    OffloadSetup offload = {};
    DType compute = DType::f32;
    bool training = true;
  };
  StepPlan() = default;
  StepPlan(const Request& request, std::span<const BlockDescription> blocks,
           const ParamLayout& layout);

  Program program, evaluation;  // evaluation: the forward of one micro-batch, number 0
  std::vector<StageBlocks> stages;
  std::vector<int> rank_of_stage;
  std::vector<BlockTraits> traits;
  std::vector<std::vector<int>> waits;  // of each action: the transfers that come first
  std::vector<Stay> gathers, evaluation_gathers, gradients;
  ActivationStays activations;
  int64_t gathered_bytes = 0, gradient_bytes = 0;  // of the pools
  int64_t saved_bytes = 0, passing_bytes = 0, stored_bytes = 0;

  PlacedStays placed() const {
    return {gradients, activations.passing,
            activations.stored.empty() ? std::vector<Stay>{} : activations.saved};
  }

 private:
  void plan_gathers(const Request& request, const std::vector<BlockTraits>& evaluating);
  void plan_activations(std::span<const BlockDescription> blocks, Offload tier);
  void plan_waits();
};

std::vector<BlockTraits> traits_of(std::span<const BlockDescription> blocks,
                                   const ParamLayout& layout);

// Bytes of tensors that lie one behind another, each at a multiple of MemoryPlan::alignment.
uint64_t aligned_bytes(const TensorSpec& spec);
uint64_t total_bytes(std::span<const TensorSpec> specs);

}  // namespace rankine
