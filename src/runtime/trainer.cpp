#include "runtime/trainer.h"

#include <algorithm>
#include <cmath>

namespace rankine {

Trainer::Trainer(Engine& engine, Setup setup)
    : mesh_(engine.mesh()),
      executor_(engine.executor()),
      store_(engine.store()),
      setup_(setup),
      scale_(setup_.dynamic_loss_scale) {}

void Trainer::restore(const State& state) {
  updates_ = state.updates;
  scale_.restore(state.loss_scale);
}

StepReport Trainer::step(int64_t step, std::span<const int32_t> ids,
                         std::span<const int32_t> targets, std::span<const int32_t> first_keys) {
  return this->step(step, learning_rate(setup_.optimizer, step, setup_.steps), ids, targets,
                    first_keys);
}

void Trainer::add_over_ranks(std::span<int64_t> parts, std::string_view tag) {
  mesh_.world
      ->all_reduce({parts.data(), DType::i64, Shape{static_cast<int64_t>(parts.size())}},
                   Reduction::sum, tag)
      .wait();
}

StepReport Trainer::step(int64_t step, double lr, std::span<const int32_t> ids,
                         std::span<const int32_t> targets, std::span<const int32_t> first_keys) {
  store_.release_pieces();
  StepReport report{.step = step, .lr = lr, .loss_scale = scale_.scale()};
  const bool first_of_tensor = mesh_.at(Axis::tensor) == 0;
  if (first_of_tensor && mesh_.at(Axis::pipeline) == 0)
    report.tokens = std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; });
  add_over_ranks({&report.tokens, 1}, "tokens");
  const double tokens = static_cast<double>(std::max<int64_t>(1, report.tokens));
  const StepInputs inputs{.ids = ids,
                          .targets = targets,
                          .first_keys = first_keys,
                          .gradient_scale = report.loss_scale / tokens,
                          .seed = setup_.seed,
                          .step = static_cast<uint64_t>(step)};
  const auto finish = [this, &report] { update(report); };
  executor_.run(inputs, std::cref(finish));
  ExactSum loss = first_of_tensor ? executor_.loss() : ExactSum{};
  add_over_ranks(loss.parts(), "loss");
  report.loss = loss.value() / tokens;
  return report;
}

void Trainer::update(StepReport& report) {
  store_.publish();
  Ops& ops = executor_.ops();
  ExactSum squares;
  ops.upload(squares.parts().data(), executor_.exact_sum());
  store_.sum_squared_gradients(executor_.exact_sum());
  ops.download(executor_.exact_sum(), squares.parts().data());
  add_over_ranks(squares.parts(), "gradient norm");
  report.grad_norm = std::sqrt(squares.value()) / report.loss_scale;
  report.skipped = scale_.skip_after(std::isfinite(report.grad_norm));
  if (report.skipped) return;
  ++updates_;
  const double factor =
      clip_factor(setup_.optimizer.clip_grad, report.grad_norm) / report.loss_scale;
  const AdamWStep step = adamw_step(setup_.optimizer, updates_, report.lr, factor);
  const int64_t delayed = store_.setup().offload.delayed_update;
  if (delayed > 0 && report.step >= delayed)
    store_.start_update(step);
  else
    store_.update(step);
}

}  // namespace rankine
