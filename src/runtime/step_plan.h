#pragma once
#include <span>
#include <vector>

#include "model/block.h"
#include "schedule/lifetimes.h"
#include "schedule/passes.h"
#include "state/param_layout.h"
#include "state/zero_plan.h"

namespace rankine {

// What a rank does in a step and where everything that comes and goes lies meanwhile. A pure
// function of its request; the same for all ranks of the data axis.
struct StepPlan {
  struct Request {
    Program computations;  // of one stage
    ZeroPlan zero = {};
    bool every_micro = false;  // gradients leave after every micro-batch
    int64_t bucket_bytes = 0;  // f32 gradients that are sent together; 0: each block at once
    DType compute = DType::f32;
  };
  StepPlan() = default;
  StepPlan(const Request& request, std::span<const BlockDescription> blocks,
           const ParamLayout& layout);

  Program program, evaluation;  // evaluation: the forward of one micro-batch, number 0
  std::vector<BlockTraits> traits;
  std::vector<Stay> gathers, evaluation_gathers, gradients;
  int64_t gathered_bytes = 0, gradient_bytes = 0;  // of the pools
};

std::vector<BlockTraits> traits_of(std::span<const BlockDescription> blocks,
                                   const ParamLayout& layout);

}  // namespace rankine
