#pragma once
#include "options/parallel_options.h"
#include "runtime/engine.h"

namespace rankine {

// The step of `micros` micro-batches; the mesh outlives it. Stages without layers of their own are
// left to be cut evenly.
StepSetup step_setup(const ParallelOptions& options, int micros, const Mesh& mesh);

}  // namespace rankine
