#pragma once
#include <string>

#include "library/layout.h"
#include "library/train_setup.h"

namespace rankine {

ExecutorSetup training_setup(const TrainOptions& options, int64_t micro_batch, DType dtype);
LayoutRequest layout_request(const TrainOptions& options, const ModelConfig& config,
                             const MeshShape& shape, const ExecutorSetup& executor, int64_t micros);

// What a run asked for and may have.
struct Shortage {
  const TrainOptions& options;  // batch sizes derived
  const ModelConfig& config;
  DType dtype;
  const MemoryLimits& limits;
  const MeshShape& mesh;
};
// The nearest settings whose plan keeps to the limits, with what they cost; or that there are none.
std::string remedies(Ops& ops, const Shortage& shortage);

}  // namespace rankine
