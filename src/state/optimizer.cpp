#include "state/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rankine {

void declare_options(OptionTable& table, OptimizerOptions& o) {
  table.heading("Optimizer (AdamW)");
  table.real({"lr"}, &o.lr, "peak learning rate", {.least = 0});
  table.real({"min-lr"}, &o.min_lr, "learning rate that decay ends at", {.least = 0});
  table.choice<LrDecay>({"lr-decay-style"}, &o.decay,
                        {{"constant", LrDecay::constant},
                         {"linear", LrDecay::linear},
                         {"cosine", LrDecay::cosine},
                         {"wsd", LrDecay::wsd}},
                        "shape of the decay; wsd: constant, then linear over the last part");
  table.integer({"warmup-steps", "lr-warmup-iters"}, &o.warmup_steps,
                "steps over which the learning rate rises linearly", {.least = 0});
  table.real({"wsd-decay-fraction"}, &o.wsd_decay_fraction,
             "share of the steps that wsd decays over", {.least = 0, .most = 1});
  table.real({"weight-decay"}, &o.weight_decay, "decoupled weight decay of matrices", {.least = 0});
  table.real({"beta1", "adam-beta1"}, &o.beta1, "decay of the momentum", {.least = 0, .most = 1});
  table.real({"beta2", "adam-beta2"}, &o.beta2, "decay of the variance", {.least = 0, .most = 1});
  table.real({"epsilon", "adam-eps"}, &o.epsilon, "added to the deviation",
             {.least = 0, .above_least = true});
  table.real({"clip-grad"}, &o.clip_grad, "largest global gradient norm; 0 does not clip",
             {.least = 0});
}

double learning_rate(const OptimizerOptions& o, int64_t step, int64_t steps) {
  if (step <= o.warmup_steps)
    return o.lr * static_cast<double>(step) / static_cast<double>(o.warmup_steps);
  int64_t decay_from = o.warmup_steps;
  if (o.decay == LrDecay::wsd)
    decay_from = std::max<int64_t>(
        decay_from, steps - std::llround(o.wsd_decay_fraction * static_cast<double>(steps)));
  if (o.decay == LrDecay::constant || step <= decay_from) return o.lr;
  if (step >= steps) return o.min_lr;
  const double done =
      static_cast<double>(step - decay_from) / static_cast<double>(steps - decay_from);
  const double left =
      o.decay == LrDecay::cosine ? 0.5 * (1 + std::cos(std::numbers::pi * done)) : 1 - done;
  return o.min_lr + (o.lr - o.min_lr) * left;
}

double clip_factor(double clip, double norm) {
  return clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0;
}

AdamWStep adamw_step(const OptimizerOptions& o, int64_t step, double lr, double gradient_scale) {
  const auto t = static_cast<double>(step);
  return {static_cast<float>(lr),
          static_cast<float>(o.beta1),
          static_cast<float>(o.beta2),
          static_cast<float>(o.epsilon),
          static_cast<float>(o.weight_decay),
          static_cast<float>(1 - std::pow(o.beta1, t)),
          static_cast<float>(1 - std::pow(o.beta2, t)),
          static_cast<float>(gradient_scale)};
}

}  // namespace rankine
