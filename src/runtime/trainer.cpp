#include "runtime/trainer.h"

#include <algorithm>
#include <cmath>

namespace rankine {

Trainer::Trainer(Executor& executor, ParamStore& store, Setup setup)
    : executor_(executor),
      store_(store),
      setup_(std::move(setup)),
      scale_(setup_.dynamic_loss_scale) {}

void Trainer::restore(const State& state) {
  updates_ = state.updates;
  scale_.restore(state.loss_scale);
}

StepReport Trainer::step(int64_t step, std::span<const int32_t> ids,
                         std::span<const int32_t> targets) {
  return this->step(step, learning_rate(setup_.optimizer, step, setup_.steps), ids, targets);
}

StepReport Trainer::step(int64_t step, double lr, std::span<const int32_t> ids,
                         std::span<const int32_t> targets) {
  StepReport report{.step = step, .lr = lr, .loss_scale = scale_.scale()};
  report.tokens = std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; });
  const double tokens = static_cast<double>(std::max<int64_t>(1, report.tokens));
  const StepInputs inputs{ids, targets, report.loss_scale / tokens, setup_.seed,
                          static_cast<uint64_t>(step)};
  const auto finish = [this, &report] { update(report); };
  executor_.run(setup_.program, inputs, std::cref(finish));
  report.loss = executor_.loss() / tokens;
  return report;
}

void Trainer::update(StepReport& report) {
  Ops& ops = executor_.ops();
  double squares = 0;
  store_.sum_squared_gradients(ops, executor_.scalar());
  ops.download(executor_.scalar(), &squares);
  report.grad_norm = std::sqrt(squares) / report.loss_scale;
  report.skipped = scale_.skip_after(std::isfinite(report.grad_norm));
  if (report.skipped) return;
  ++updates_;
  const double factor =
      clip_factor(setup_.optimizer.clip_grad, report.grad_norm) / report.loss_scale;
  store_.update(ops, adamw_step(setup_.optimizer, updates_, report.lr, factor));
}

}  // namespace rankine
