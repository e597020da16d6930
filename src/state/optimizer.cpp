#include "state/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

#include "base/error.h"

namespace rankine {

void declare_options(OptionTable& table, OptimizerOptions& o) {
  // The update computes in f32: within it a decay must stay below 1 and epsilon above 0.
  constexpr double most = std::numeric_limits<float>::max(), most_decay = 0.999999;
  table.heading("Optimizer (AdamW)");
  table.real({"lr"}, &o.lr, "peak learning rate", {.least = 0, .most = most});
  table.real({"min-lr"}, &o.min_lr,
             "learning rate that decay ends at; unless given, a tenth of --lr",
             {.least = 0, .most = most});
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
  table.real({"weight-decay"}, &o.weight_decay, "decoupled weight decay of matrices",
             {.least = 0, .most = most});
  table.real({"beta1", "adam-beta1"}, &o.beta1, "decay of the momentum",
             {.least = 0, .most = most_decay});
  table.real({"beta2", "adam-beta2"}, &o.beta2, "decay of the variance",
             {.least = 0, .most = most_decay});
  table.real({"epsilon", "adam-eps"}, &o.epsilon, "added to the deviation",
             {.least = 1.2e-38, .most = most});
  table.real({"clip-grad"}, &o.clip_grad, "largest global gradient norm; 0 does not clip",
             {.least = 0});
}

namespace {

// The step behind which decay begins, were there no warm-up.
int64_t decay_begin(const OptimizerOptions& o, int64_t steps) {
  return o.decay == LrDecay::wsd
             ? steps - std::llround(o.wsd_decay_fraction * static_cast<double>(steps))
             : 0;
}

// In decimals: of 3e-4 it is 3e-5 and not its neighbour.
double tenth_of(double value) {
  return std::strtod(fmt::format("{:.15g}", value / 10).c_str(), nullptr);
}

}  // namespace

std::vector<std::string> settle(OptimizerOptions& o, int64_t steps, const OptionTable& table) {
  std::vector<std::string> warnings;
  const auto contradict = [&](std::initializer_list<std::string_view> names, std::string fault) {
    const bool all_stored = std::ranges::all_of(
        names, [&](std::string_view name) { return table.origin(name) == OptionOrigin::stored; });
    require(all_stored, ErrorKind::usage, "{}", fault);
    warnings.push_back(std::move(fault) + "; the run goes on as it began");
  };
  if (o.decay == LrDecay::constant)
    refuse_without_effect(table, {"min-lr"}, "with --lr-decay-style constant");
  else if (table.origin("min-lr") == OptionOrigin::standard)
    o.min_lr = tenth_of(o.lr);
  if (o.decay != LrDecay::wsd)
    refuse_without_effect(table, {"wsd-decay-fraction"}, "without --lr-decay-style wsd");
  if (o.decay != LrDecay::constant && o.min_lr > o.lr)
    contradict({"lr", "min-lr"},
               fmt::format("--min-lr {} is above the peak, --lr {}: the rate would rise; give at "
                           "most {}, or leave --min-lr out for a tenth of the peak",
                           o.min_lr, o.lr, o.lr));
  if (o.warmup_steps > 0 && o.warmup_steps >= steps)
    contradict({"warmup-steps", "steps"},
               fmt::format("--warmup-steps {} of --steps {}: the rate would never reach its peak "
                           "and decay; give at most {}",
                           o.warmup_steps, steps, steps - 1));
  else if (o.decay == LrDecay::wsd && o.warmup_steps > decay_begin(o, steps))
    contradict({"warmup-steps", "steps", "wsd-decay-fraction", "lr-decay-style"},
               fmt::format("--warmup-steps {} ends behind step {}, where the decay of wsd begins "
                           "(--wsd-decay-fraction {} of --steps {}); give at most {}",
                           o.warmup_steps, decay_begin(o, steps), o.wsd_decay_fraction, steps,
                           decay_begin(o, steps)));
  return warnings;
}

double learning_rate(const OptimizerOptions& o, int64_t step, int64_t steps) {
  if (step <= o.warmup_steps)
    return o.lr * static_cast<double>(step) / static_cast<double>(o.warmup_steps);
  const int64_t decay_from = std::max(o.warmup_steps, decay_begin(o, steps));
  if (o.decay == LrDecay::constant || step <= decay_from) return o.lr;
  if (step >= steps) return o.min_lr;
  const double done =
      static_cast<double>(step - decay_from) / static_cast<double>(steps - decay_from);
  const double left =
      o.decay == LrDecay::cosine ? 0.5 * (1 + std::cos(std::numbers::pi * done)) : 1 - done;
  return o.min_lr + (o.lr - o.min_lr) * left;
}

AdamWStep adamw_step(const OptimizerOptions& o, double lr, const Tensor& state) {
  AdamWStep out = adamw_step(o, 1, lr, 1);
  out.state = state;
  return out;
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
          static_cast<float>(gradient_scale),
          {}};
}

}  // namespace rankine
