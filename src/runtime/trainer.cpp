#include "runtime/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rankine {

Trainer::Trainer(Engine& engine, Setup setup)
    : mesh_(engine.mesh()), executor_(engine.executor()), store_(engine.store()), setup_(setup) {
  state_.loss_scale = LossScale(setup_.dynamic_loss_scale).state();
  for (Pending& pending : pending_) pending.losses.resize(static_cast<size_t>(executor_.micros()));
}

Trainer::~Trainer() {
  try {
    executor_.ops().synchronize();
  } catch (const std::exception&) {
    return;  // whoever waited for the step has seen it
  }
}

void Trainer::restore(const State& state) {
  state_ = {};
  state_.updates = state.updates;
  state_.loss_scale = state.loss_scale;
  hopeless_ = state.hopeless;
  written_ = false;
}

void Trainer::write_state(const StepState& state) {
  executor_.ops().upload(&state, executor_.step_state());
  if (executor_.optimizer_state().data != executor_.step_state().data)
    store_.optimizer_ops().upload(&state, executor_.optimizer_state());
  written_ = true;
}

StepReport Trainer::step(int64_t step, std::span<const int32_t> ids,
                         std::span<const int32_t> targets, std::span<const int32_t> first_keys) {
  return this->step(step, learning_rate(step), ids, targets, first_keys);
}

void Trainer::add_over_ranks(std::span<int64_t> parts, std::string_view tag) {
  mesh_.world
      ->all_reduce({parts.data(), DType::i64, Shape{static_cast<int64_t>(parts.size())}},
                   Reduction::sum, tag)
      .wait();
}

StepReport Trainer::step(int64_t step, double lr, std::span<const int32_t> ids,
                         std::span<const int32_t> targets, std::span<const int32_t> first_keys) {
  expect(started_ == reported_, "a step at once begins when no other is under way");
  start(step, lr, ids, targets, first_keys);
  return *finished(true);
}

void Trainer::start(int64_t step, double lr, std::span<const int32_t> ids,
                    std::span<const int32_t> targets, std::span<const int32_t> first_keys) {
  expect(started_ - reported_ < 2, "at most two steps are under way");
  store_.release_pieces();
  if (!written_) write_state(state_);
  Pending& now = pending(started_++);
  now.report = {.step = step, .lr = lr};
  now.mark = {};
  int64_t& tokens = now.report.tokens;
  if (mesh_.at(Axis::tensor) == 0 && mesh_.at(Axis::pipeline) == 0)
    tokens = std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; });
  add_over_ranks({&tokens, 1}, "tokens");
  if (tokens == 0) return;
  const auto finish = [this, &now] { update(now); };
  executor_.run(inputs_of(now.report, ids, targets, first_keys), std::cref(finish));
  executor_.read_losses_later(now.losses.data());
  now.mark = executor_.ops().queue().mark();
}

std::optional<StepReport> Trainer::finished(bool wait) {
  if (started_ == reported_) return {};
  const bool newest = started_ - reported_ == 1;
  if (newest && !wait && !executor_.ops().device().is_host()) return {};
  Pending& oldest = pending(reported_++);
  oldest.mark.wait();
  complete(oldest);
  return oldest.report;
}

void Trainer::complete(Pending& done) {
  StepReport& report = done.report;
  if (report.tokens == 0) {
    report.loss_scale = state_.loss_scale.scale;
    report.loss = report.grad_norm = std::numeric_limits<double>::quiet_NaN();
    report.hopeless = hopeless_;
    return;
  }
  state_ = done.state;
  report.grad_norm = state_.grad_norm;
  report.loss_scale = state_.used_scale;
  report.skipped = state_.skipped != 0;
  ExactSum loss;
  if (mesh_.at(Axis::tensor) == 0)
    for (const double of_micro : done.losses) loss.add(of_micro);
  add_over_ranks(loss.parts(), "loss");
  report.loss = loss.value() / static_cast<double>(report.tokens);
  // A loss does not depend on the scale, and the scale does not fall below 1.
  const bool curable = report.loss_scale > 1 && std::isfinite(report.loss);
  if (!report.skipped)
    hopeless_ = 0;
  else if (!curable)
    ++hopeless_;
  report.hopeless = hopeless_;
}

StepInputs Trainer::inputs_of(const StepReport& report, std::span<const int32_t> ids,
                              std::span<const int32_t> targets,
                              std::span<const int32_t> first_keys) const {
  return {.ids = ids,
          .targets = targets,
          .first_keys = first_keys,
          .gradient_scale = 1 / static_cast<double>(report.tokens),
          .dynamic_scale = setup_.dynamic_loss_scale,
          .seed = setup_.seed,
          .step = static_cast<uint64_t>(report.step)};
}

std::string Trainer::diagnose(const StepReport& report, std::span<const int32_t> ids,
                              std::span<const int32_t> targets,
                              std::span<const int32_t> first_keys) {
  store_.release_pieces();
  expect(started_ == reported_, "a step is looked at when no other is under way");
  StepState then = state_;
  then.loss_scale.scale = report.loss_scale;
  write_state(then);
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

void Trainer::update(Pending& now) {
  store_.publish();
  Ops& ops = store_.optimizer_ops();
  const Tensor exact = executor_.exact_sum(), state = executor_.optimizer_state();
  ops.fill({exact.data, DType::f64, exact.shape, exact.device}, 0);  // the same bits
  store_.sum_squared_gradients(exact);
  mesh_.states->all_reduce(exact, Reduction::sum, "gradient norm").lead(ops.queue());
  const OptimizerOptions& optimizer = setup_.optimizer;
  ops.decide({.dynamic_scale = setup_.dynamic_loss_scale,
              .clip_grad = optimizer.clip_grad,
              .beta1 = optimizer.beta1,
              .beta2 = optimizer.beta2},
             exact, state);
  ops.read_later(state, &now.state);
  const AdamWStep step = adamw_step(optimizer, now.report.lr, state);
  if (store_.optimizer_memory() == Tier::device) return store_.update(step);
  // The host decides, which it can only when the gradients are there.
  ops.queue().mark().wait();
  const Tensor seen = executor_.step_state();
  if (seen.data != state.data)
    executor_.ops().queue().copy(seen.data, state.data, sizeof(StepState));
  if (now.state.skipped != 0) return;
  const int64_t delayed = store_.setup().offload.delayed_update;
  if (delayed > 0 && now.report.step >= delayed)
    store_.start_update(step);
  else
    store_.update(step);
}

}  // namespace rankine
