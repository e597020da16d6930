#include "runtime/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  hopeless_ = state.hopeless;
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
  if (report.tokens == 0) {
    report.loss = report.grad_norm = std::numeric_limits<double>::quiet_NaN();
    report.hopeless = hopeless_;
    return report;
  }
  const auto finish = [this, &report] { update(report); };
  executor_.run(inputs_of(report, ids, targets, first_keys), std::cref(finish));
  ExactSum loss = first_of_tensor ? executor_.loss() : ExactSum{};
  add_over_ranks(loss.parts(), "loss");
  report.loss = loss.value() / static_cast<double>(report.tokens);
  // A loss does not depend on the scale, and the scale does not fall below 1.
  const bool curable = report.loss_scale > 1 && std::isfinite(report.loss);
  if (!report.skipped)
    hopeless_ = 0;
  else if (!curable)
    ++hopeless_;
  report.hopeless = hopeless_;
  return report;
}

StepInputs Trainer::inputs_of(const StepReport& report, std::span<const int32_t> ids,
                              std::span<const int32_t> targets,
                              std::span<const int32_t> first_keys) const {
  return {.ids = ids,
          .targets = targets,
          .first_keys = first_keys,
          .gradient_scale = report.loss_scale / static_cast<double>(report.tokens),
          .seed = setup_.seed,
          .step = static_cast<uint64_t>(report.step)};
}

std::string Trainer::diagnose(const StepReport& report, std::span<const int32_t> ids,
                              std::span<const int32_t> targets,
                              std::span<const int32_t> first_keys) {
  store_.release_pieces();
  const Trouble mine = executor_.diagnose(inputs_of(report, ids, targets, first_keys));
  store_.wait_all_parameters();
  const std::string line =
      mine.arose() ? fmt::format("{} {}", mine.place, to_string(mine)) : std::string();
  std::string first;
  int64_t place = 0;
  const std::vector<std::string> lines = all_gather_texts(*mesh_.world, line, "values not finite");
  for (size_t r = 0; r < lines.size(); ++r) {
    if (lines[r].empty()) continue;
    const size_t space = lines[r].find(' ');
    const int64_t other = std::stoll(lines[r].substr(0, space));
    if (!first.empty() && other >= place) continue;
    place = other;
    first = lines[r].substr(space + 1);
    if (lines.size() > 1) first += fmt::format(" ({})", place_of(mesh_.shape, static_cast<int>(r)));
  }
  return first;
}

void Trainer::update(StepReport& report) {
  store_.publish();
  Ops& ops = store_.optimizer_ops();
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
