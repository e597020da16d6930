#pragma once
#include <cstdint>
#include <span>

#include "base/options.h"
#include "ops/ops.h"

namespace rankine {

struct SamplerOptions {
  double temperature = 0.8;  // 0: greedy
  double top_p = 0.95;       // 1: off
  int64_t top_k = 0;         // 0: off
  uint64_t seed = 0;
};
void declare_options(OptionTable& table, SamplerOptions& options);

TokenChoice token_choice(const SamplerOptions& options, int64_t vocabulary,
                         std::span<const int32_t> forbidden = {});

// The place in [0, 1) at which the token of this position is drawn: a function of (seed, position,
// sample), so that the same prompt and seed give the same text.
double sampling_place(const SamplerOptions& options, uint64_t position, uint64_t sample = 0);

}  // namespace rankine
