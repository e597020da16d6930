#include "runtime/train_loop.h"

#include <algorithm>

#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "runtime/process.h"

namespace rankine {
namespace {

struct StateTensors {
  std::vector<NamedTensor> weights, momentum, variance;
  explicit StateTensors(const ParamStore& store)
      : weights(store.weights()), momentum(store.momentum()), variance(store.variance()) {}
  std::vector<TensorGroup> groups() const {
    return {{"weights", weights}, {"momentum", momentum}, {"variance", variance}};
  }
};

}  // namespace

RunState resume(const std::filesystem::path& checkpoint, Engine& engine, Trainer& trainer) {
  const StateTensors tensors(engine.store());
  const std::string text = load_checkpoint(checkpoint, tensors.groups(), engine.executor().ops());
  engine.store().refresh_compute(engine.executor().ops());
  RunState state = parse_run_state(text, checkpoint.string());
  trainer.restore(state.trainer);
  return state;
}

TrainLoop::TrainLoop(TrainLoopParts parts, RunState state)
    : parts_(parts),
      state_(std::move(state)),
      metrics_(parts.options.metrics, state_.step),
      saved_step_(state_.step),
      first_step_(state_.step) {
  const auto tokens = static_cast<size_t>(parts_.loader.micros() * parts_.loader.rows() *
                                          parts_.loader.seq_length());
  ids_.resize(tokens);
  targets_.resize(tokens);
}

bool TrainLoop::due(int64_t interval, int64_t step) const {
  return step == parts_.options.steps || (interval > 0 && step % interval == 0);
}

int TrainLoop::run() {
  int signal = 0;
  while (state_.step < parts_.options.steps && signal == 0) {
    one_step(state_.step + 1);
    signal = parts_.stop.received();
    if (signal != 0) log_line(parts_.log, "signal {} received: saving and leaving", signal);
    if (signal != 0 || due(parts_.options.save_interval, state_.step)) save();
  }
  if (saved_step_ != state_.step) save();
  return signal;
}

void TrainLoop::one_step(int64_t step) {
  const double start = monotonic_seconds();
  const int64_t micro_tokens = parts_.loader.rows() * parts_.loader.seq_length();
  for (int64_t micro = 0; micro < parts_.loader.micros(); ++micro)
    parts_.loader.fill(step - 1, micro, ids_.data() + micro * micro_tokens,
                       targets_.data() + micro * micro_tokens);
  StepMetrics m;
  m.report = parts_.trainer.step(step, ids_, targets_);
  m.seconds = monotonic_seconds() - start;
  seconds_ += m.seconds;
  state_.step = step;
  state_.tokens += m.report.tokens;
  state_.trainer = parts_.trainer.state();
  m.tokens_per_second = static_cast<double>(m.report.tokens) / m.seconds;
  m.mfu = training_flops_per_token(parts_.engine.config(), parts_.loader.seq_length()) *
          m.tokens_per_second / parts_.peak_flops;
  m.planned_bytes = parts_.engine.plan().peak_bytes(Tier::device);
  m.arena_peak_bytes = parts_.engine.arena().peak_bytes();
  m.resident_bytes = resident_memory().peak;
  if (parts_.loader.order().validation_windows() > 0 && due(parts_.options.eval_interval, step))
    m.validation_loss = validate();
  metrics_.write(m);
  log(m);
}

void TrainLoop::log(const StepMetrics& m) {
  const auto done = static_cast<double>(m.report.step - first_step_);
  const double left = seconds_ / done * static_cast<double>(parts_.options.steps - m.report.step);
  std::string line = fmt::format(
      "step {:>{}}/{} | loss {:.4f} | grad norm {:.3f} | lr {:.2e} | {:.0f} tokens/s | MFU {:.1f} "
      "%",
      m.report.step, std::to_string(parts_.options.steps).size(), parts_.options.steps,
      m.report.loss, m.report.grad_norm, m.report.lr, m.tokens_per_second, 100 * m.mfu);
  if (m.report.skipped)
    line += fmt::format(" | skipped: gradient not finite at loss scale {:g}", m.report.loss_scale);
  if (m.validation_loss) line += fmt::format(" | validation loss {:.4f}", *m.validation_loss);
  line += " | left " + format_seconds(left);
  const bool wanted = m.report.step == first_step_ + 1 || m.report.skipped || m.validation_loss ||
                      due(parts_.options.log_interval, m.report.step);
  if (wanted)
    parts_.log.write(line);
  else if (parts_.log.terminal())
    parts_.log.redraw(line);
}

double TrainLoop::validate() {
  double sum = 0;
  int64_t tokens = 0;
  const MicroShape shape{parts_.loader.rows(), parts_.loader.seq_length()};
  const auto count = static_cast<size_t>(shape.rows());
  for (int64_t batch = 0; batch < parts_.options.eval_batches; ++batch) {
    const int64_t rows =
        parts_.loader.fill_validation(batch * parts_.loader.rows(), ids_.data(), targets_.data());
    if (rows == 0) break;
    sum += parts_.engine.executor().evaluate(std::span(ids_).first(count),
                                             std::span(targets_).first(count), shape);
    tokens += rows * shape.tokens;
  }
  return sum / static_cast<double>(std::max<int64_t>(1, tokens));
}

void TrainLoop::save() {
  const StateTensors tensors(parts_.engine.store());
  const auto folder = checkpoint_folder(parts_.options.output, state_.step);
  save_checkpoint(folder, run_state_text(state_), tensors.groups(), parts_.engine.executor().ops());
  saved_step_ = state_.step;
  remove_old_checkpoints();
}

void TrainLoop::remove_old_checkpoints() const {
  if (parts_.options.keep_checkpoints == 0) return;
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(parts_.options.output)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.starts_with("step-") && !name.ends_with(".tmp") &&
        entry.path() <= checkpoint_folder(parts_.options.output, state_.step))
      folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  const auto keep = static_cast<size_t>(parts_.options.keep_checkpoints);
  for (size_t i = 0; i + keep < folders.size(); ++i) std::filesystem::remove_all(folders[i]);
}

}  // namespace rankine
