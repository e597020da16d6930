#pragma once
#include <vector>

#include "model/config.h"

namespace rankine {

// cos and sin of the rotary embedding for positions [0, positions): row p is
// [cos(p f_0) ... cos(p f_{D/2-1}), sin(p f_0) ...], f_i = theta^(-2i/D) under the config's scaling
// (linear: Chen et al. 2023; llama3: Llama 3.1; yarn: Peng et al. 2023, which also scales cos and
// sin). Angles are formed in f32, as the published models do.
std::vector<float> rope_table(const ModelConfig& config, int64_t positions);

}  // namespace rankine
