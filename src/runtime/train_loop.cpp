#include "runtime/train_loop.h"

#include <algorithm>

#include "base/text.h"
#include "checkpoint/run_checkpoints.h"
#include "machine/process.h"
#include "runtime/finite.h"

namespace rankine {
namespace {

// Behind a delayed update also what the next step computes with, which is one update older.
constexpr const char* lagging = "lagging";

struct StateTensors {
  // Of counted pieces only those that this rank is to write.
  static StateTensors counted(const ParamStore& store) {
    StateTensors out(store, Copies::counted);
    out.writes = store.counts();
    return out;
  }

  std::vector<NamedTensor> weights, momentum, variance, computed;
  bool writes = true;
  StateTensors(const ParamStore& store, Copies copies)
      : weights(store.weights(copies)),
        momentum(store.momentum(copies)),
        variance(store.variance(copies)) {
    if (store.lags()) computed = store.computed(copies);
  }
  std::vector<TensorGroup> groups() const {
    if (!writes) return {};
    std::vector<TensorGroup> out = {
        {"weights", weights}, {"momentum", momentum}, {"variance", variance}};
    if (!computed.empty()) out.push_back({lagging, computed});
    return out;
  }
};

}  // namespace

RunState resume(const std::filesystem::path& checkpoint, Engine& engine, Trainer& trainer) {
  const StateTensors tensors(engine.store(), Copies::all);
  const std::string text = load_checkpoint(checkpoint, tensors.groups(), engine.executor().ops());
  const StateTensors counted = StateTensors::counted(engine.store());
  const auto found = find_non_finite(engine, counted.groups());
  require(!found, ErrorKind::data,
          "'{}': {}; begin a new run from an earlier checkpoint with --model", checkpoint.string(),
          found ? describe(*found) : "");
  engine.store().refresh_compute();
  RunState state = parse_run_state(text, checkpoint.string());
  if (state.trainer.lags && engine.store().setup().offload.delayed_update > 0) {
    const std::vector<NamedTensor> computed = engine.store().computed();
    const TensorGroup group{lagging, computed};
    load_checkpoint(checkpoint, std::span(&group, 1), engine.executor().ops());
    engine.store().restore_lag();
  }
  require_computable(engine);
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
  if (parts_.loader.masks_documents()) first_keys_.resize(tokens);
  if (!metrics_.warning().empty()) warn_line(parts_.log, "{}", metrics_.warning());
}

WindowRow TrainLoop::rows_from(int64_t token) {
  return {ids_.data() + token, targets_.data() + token,
          first_keys_.empty() ? nullptr : first_keys_.data() + token};
}

bool TrainLoop::due(int64_t interval, int64_t step) const {
  return step == parts_.options.steps || (interval > 0 && step % interval == 0);
}

int TrainLoop::run() {
  int signal = 0;
  for (int64_t step = state_.step + 1; step <= parts_.options.steps && signal == 0; ++step) {
    one_step(step);
    signal = agreed_signal();
    if (signal != 0)
      while (const auto last = parts_.trainer.finished(true)) report(*last);
    if (signal != 0) log_line(parts_.log, "asked to stop (signal {}): saving and leaving", signal);
    if (signal != 0 || due(parts_.options.save_interval, state_.step)) save();
  }
  if (saved_step_ != state_.step) save();
  if (state_.trainer.hopeless > 0)
    warn_line(parts_.log,
              "the last {} updates were skipped, since the gradient was not finite: nothing was "
              "learned in them",
              state_.trainer.hopeless);
  return signal;
}

// A signal may reach some ranks later than others, but they must all stop after the same step.
int TrainLoop::agreed_signal() {
  int32_t signal = parts_.stop.received();
  mesh().world->all_reduce({&signal, DType::i32, Shape{1}}, Reduction::max, "signal").wait();
  return signal;
}

void TrainLoop::fill(int64_t step) {
  const int64_t micro_tokens = parts_.loader.rows() * parts_.loader.seq_length();
  for (int64_t micro = 0; micro < parts_.loader.micros(); ++micro)
    parts_.loader.fill(step - 1, micro, rows_from(micro * micro_tokens));
}

void TrainLoop::one_step(int64_t step) {
  begins_[static_cast<size_t>(step % 2)] = {monotonic_seconds(), axis_traffic(mesh()),
                                            parts_.engine.tier_traffic()};
  fill(step);
  parts_.trainer.start(step, parts_.trainer.learning_rate(step), ids_, targets_, first_keys_);
  while (const auto done = parts_.trainer.finished(must_know(step))) report(*done);
}

// Whether what follows a step needs its report, so that the next one cannot begin without it.
bool TrainLoop::must_know(int64_t step) const {
  const auto& o = parts_.options;
  return due(o.save_interval, step) || due(o.eval_interval, step) ||
         (o.max_skipped_steps > 0 && state_.trainer.hopeless + 2 >= o.max_skipped_steps);
}

void TrainLoop::report(const StepReport& done) {
  const Begin& begin = begins_[static_cast<size_t>(done.step % 2)];
  const double now = monotonic_seconds();
  StepMetrics m;
  m.report = done;
  m.seconds = now - std::max(begin.seconds, reported_at_);
  reported_at_ = now;
  seconds_ += m.seconds;
  const int64_t step = done.step;
  state_.step = step;
  state_.tokens += m.report.tokens;
  state_.trainer = parts_.trainer.state();
  m.tokens_per_second = static_cast<double>(m.report.tokens) / m.seconds;
  m.mfu = training_flops_per_token(parts_.engine.config(), parts_.loader.seq_length()) *
          m.tokens_per_second / parts_.peak_flops;
  const MemoryPlan& plan = parts_.engine.plan();
  m.planned_bytes = plan.peak_bytes(Tier::device) + plan.peak_bytes(Tier::host);
  m.arena_peak_bytes = parts_.engine.arena().peak_bytes() + parts_.engine.host_arena().peak_bytes();
  m.resident_bytes = resident_memory().peak;
  m.ranks = mesh().world->size();
  m.traffic = axis_traffic(mesh()) - begin.traffic;
  m.tiers = parts_.engine.tier_traffic() - begin.tiers;
  if (parts_.loader.mix().validation_windows() > 0 && due(parts_.options.eval_interval, step))
    m.validation_loss = validate();
  skipped_ = m.report.skipped;
  metrics_.write(m);
  log(m);
  const int64_t most = parts_.options.max_skipped_steps;
  if (most > 0 && m.report.hopeless >= most) give_up(m.report);
}

namespace {

std::string go_on_from(const std::filesystem::path& run) {
  const auto newest = newest_checkpoint(run).found;
  return newest
             ? fmt::format("go on from '{}', the newest checkpoint, and ", newest->folder.string())
             : "";
}

}  // namespace

// Names where the trouble of the step begins.
void TrainLoop::give_up(const StepReport& report) {
  fill(report.step);  // a validation may have been there
  const std::string where = parts_.trainer.diagnose(report, ids_, targets_, first_keys_);
  fail(ErrorKind::data,
       "step {}: the gradient was not finite in {} steps in a row (--max-skipped-steps), so that "
       "nothing is learned any more; {}; {}use a smaller --lr or another --precision, or look at "
       "the data",
       report.step, report.hopeless,
       where.empty() ? "no single value of the step is, their sum alone" : "it begins in " + where,
       go_on_from(parts_.options.output));
}

namespace {

std::string figures(const StepReport& r) {
  if (r.tokens == 0) return fmt::format("no token to learn: no loss, no update | lr {:.2e}", r.lr);
  return fmt::format("loss {:.4f} | grad norm {:.3f} | lr {:.2e}", r.loss, r.grad_norm, r.lr);
}

}  // namespace

void TrainLoop::log(const StepMetrics& m) {
  const auto done = static_cast<double>(m.report.step - first_step_);
  const double left = seconds_ / done * static_cast<double>(parts_.options.steps - m.report.step);
  std::string line =
      fmt::format("step {:>{}}/{} | {} | {:.0f} tokens/s | MFU {:.1f} %", m.report.step,
                  std::to_string(parts_.options.steps).size(), parts_.options.steps,
                  figures(m.report), m.tokens_per_second, 100 * m.mfu);
  if (m.report.skipped)
    line += fmt::format(" | skipped: gradient not finite at loss scale {:g}", m.report.loss_scale);
  if (m.validation_loss) line += fmt::format(" | validation loss {:.4f}", *m.validation_loss);
  line += " | left " + format_seconds(left);
  const bool wanted = m.report.step == first_step_ + 1 || m.report.skipped ||
                      m.report.tokens == 0 || m.validation_loss ||
                      due(parts_.options.log_interval, m.report.step);
  if (wanted)
    parts_.log.write(line);
  else if (parts_.log.terminal())
    parts_.log.redraw(line);
}

// Validation batches go round the data axis; past the last one a rank computes what counts for
// nothing, since the ranks may have to gather parameters from each other.
std::optional<double> TrainLoop::validate() {
  Communicator &ranks = *mesh().world, &data = *mesh().data;
  const bool counts = mesh().at(Axis::tensor) == 0;
  ExactSum sum;
  int64_t tokens = 0;
  const MicroShape shape{parts_.loader.rows(), parts_.loader.seq_length()};
  const auto count = static_cast<size_t>(shape.rows());
  for (int64_t first = 0; first < parts_.options.eval_batches; first += data.size()) {
    const int64_t batch = first + data.rank();
    const int64_t begin = batch < parts_.options.eval_batches
                              ? batch * parts_.loader.rows()
                              : static_cast<int64_t>(parts_.loader.mix().validation_windows());
    parts_.loader.fill_validation(begin, rows_from(0));
    const double loss = parts_.engine.executor().evaluate(
        std::span(ids_).first(count), std::span(targets_).first(count), shape, first_keys_);
    if (!counts) continue;
    sum.add(loss);
    if (mesh().at(Axis::pipeline) == 0)
      tokens += std::count_if(targets_.begin(), targets_.begin() + shape.rows(),
                              [](int32_t target) { return target >= 0; });
  }
  ranks
      .all_reduce({sum.parts().data(), DType::i64, Shape{ExactSum::size}}, Reduction::sum,
                  "validation loss")
      .wait();
  ranks.all_reduce({&tokens, DType::i64, Shape{1}}, Reduction::sum, "validation tokens").wait();
  if (tokens > 0) return sum.value() / static_cast<double>(tokens);
  warn_line(parts_.log, "the validation data have no token to score: there is no validation loss");
  return {};
}

void TrainLoop::save() {
  Communicator& ranks = *mesh().world;
  const StateTensors tensors = StateTensors::counted(parts_.engine.store());
  const auto folder = checkpoint_folder(parts_.options.output, state_.step);
  require_finite(tensors.groups());
  save_checkpoint_together(folder, run_state_text(state_), tensors.groups(),
                           parts_.engine.executor().ops(), ranks, parts_.checkpoint_files);
  parts_.engine.store().release_pieces();
  saved_step_ = state_.step;
  // What was learned last may be the trouble, so that the older ones are still wanted.
  if (ranks.rank() == 0 && !skipped_) remove_old_checkpoints();
}

// A checkpoint that cannot be loaded is not written, and takes no other's place.
void TrainLoop::require_finite(std::span<const TensorGroup> groups) const {
  const auto found = find_non_finite(parts_.engine, groups);
  if (!found) return;
  parts_.engine.store().wait_all_parameters();
  fail(
      ErrorKind::data,
      "step {}: {}; no checkpoint is written of it, the newest is {}: go on from it with a smaller "
      "--lr",
      state_.step, describe(*found), go_on_from(parts_.options.output));
}

void TrainLoop::remove_old_checkpoints() const {
  if (parts_.options.keep_checkpoints == 0) return;
  for (const std::string& left :
       prune_checkpoints(parts_.options.output,
                         {.keep = parts_.options.keep_checkpoints, .last_step = state_.step}))
    warn_line(parts_.log, "{}", left);
}

}  // namespace rankine
