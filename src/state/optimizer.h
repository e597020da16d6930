#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "ops/ops.h"

// The optimizer's settings and the numbers that change from step to step. Steps count from 1.
namespace rankine {

enum class LrDecay : uint8_t { constant, linear, cosine, wsd };

struct OptimizerOptions {
  double lr = 3e-4, min_lr = 3e-5;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  double clip_grad = 1.0;  // largest global gradient norm, 0: no clipping
  LrDecay decay = LrDecay::cosine;
  int64_t warmup_steps = 0;
  double wsd_decay_fraction = 0.2;  // wsd: the last part of the steps that decays
};
void declare_options(OptionTable& table, OptimizerOptions& options);
// Derives what was not given (a minimum of a tenth of the peak) and refuses values that contradict
// each other or `steps`, Error{usage}. What a resumed run has stored is taken as it is; returns
// warnings where that contradicts itself.
std::vector<std::string> settle(OptimizerOptions& options, int64_t steps, const OptionTable& table);

// The learning rate of step `step` of `steps`: linear warm-up from lr / warmup_steps, then decay to
// min_lr at the last step (wsd: constant first, Hu et al. 2024, arXiv 2404.06395).
double learning_rate(const OptimizerOptions& options, int64_t step, int64_t steps);

// `gradient_scale` undoes the loss scale and clips.
AdamWStep adamw_step(const OptimizerOptions& options, int64_t step, double lr,
                     double gradient_scale);
// What else there is of a step that StepState's decisions go into.
AdamWStep adamw_step(const OptimizerOptions& options, double lr, const Tensor& state);

}  // namespace rankine
