#pragma once
#include "schedule/pipeline.h"

// The planner of ZB-V: lists of computations found by playing the pipeline greedily.
namespace rankine {

// Computations of stages r and 2 ranks - 1 - r for each rank r, without U. Never are more than
// 2 ranks stages of micro-batches between F and W on one rank.
std::vector<Program> zb_v_programs(int ranks, int micros, const ComputationSeconds& seconds);

}  // namespace rankine
