#include "base/file.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_config.h"
#include "command.h"
#include "data/data_checks.h"
#include "library/layout.h"
#include "library/ranks.h"
#include "library/remedies.h"
#include "library/run_folder.h"
#include "library/text_bounds.h"
#include "library/train_data.h"
#include "library/train_setup.h"
#include "library/train_text.h"
#include "machine/peak.h"
#include "machine/process.h"
#include "ops/backend.h"
#include "runtime/train_loop.h"
#include "schedule/simulate.h"

namespace rankine {
namespace {

void print_opening(Log& log, const TrainOptions& o, const ModelConfig& config,
                   const TrainingData& data, const TrainingText& text, const Ops& ops) {
  const DType dtype = compute_dtype(o.run.precision, ops);
  log_line(log, "machine   {}", ops.description());
  log_line(log, "model     {}", model_line(config));
  log_line(log, "data      {} tokens in {} files, tokenizer {}",
           format_count(static_cast<double>(data.tokens())), data.files(),
           text.tokenizer ? text.tokenizer->identity() : "unknown");
  const TextTokenizer* tokenizer = text.tokenizer ? &*text.tokenizer : nullptr;
  log_line(log, "text      {}", to_string(text_bounds({config, {}, tokenizer}), tokenizer));
  for (const std::string& warning : text.warnings) warn_line(log, "{}", warning);
  const int64_t ranks = o.run.global_batch_size / (o.run.micro_batch_size * o.run.accumulation);
  log_line(log, "batch     {} sequences of {} tokens a step = micro-batch {} x accumulation {}{}",
           o.run.global_batch_size, o.run.seq_length, o.run.micro_batch_size, o.run.accumulation,
           ranks > 1 ? fmt::format(" x {} data-parallel ranks", ranks) : "");
  log_line(log, "precision {}{}", dtype_name(dtype),
           ops.native(dtype) ? "" : " (this processor has no such products: they are done in f32)");
  for (const std::vector<std::string>& warnings : {o.warnings, data.warnings()})
    for (const std::string& warning : warnings) warn_line(log, "{}", warning);
}

// The model's own ends of texts, and those that are taught.
void add_all_ends(const ModelSource& source, const TrainingText& text, ModelConfig& config) {
  if (source.kind != ModelSource::Kind::preset && config.eos == source.config.eos)
    add_ends(config,
             std::vector<int32_t>(source.generation_eos.begin(), source.generation_eos.end()));
  add_ends(config, text.taught_ends);
}

// The placement of all ranks.
void print_ranks(Log& log, const TrainOptions& o, const PlannedLayout& layout,
                 const std::string& world, const std::vector<std::string>& machines) {
  if (machines.size() == 1) return;
  constexpr const char* shared[] = {"nothing", "optimizer states", "optimizer states and gradients",
                                    "optimizer states, gradients and parameters"};
  log_line(log, "ranks     {} ranks, {}", machines.size(), world);
  log_line(log, "mesh      {}", layout_line(o.parallel, static_cast<int>(machines.size())));
  for (size_t r = 0; r < machines.size(); ++r)
    log_line(log, "          {}: {}, {}", place_of(layout.shape(), static_cast<int>(r)),
             blocks_text(layout.of_rank(static_cast<int>(r))), machines[r]);
  log_line(log, "zero      stage {}: {} cut over the data axis{}", o.parallel.zero,
           shared[o.parallel.zero], o.parallel.strict ? "; strict sums" : "");
}

void print_offload(Log& log, const ParallelOptions& o, const Engine& engine) {
  const std::string states = engine.store().disk_description(),
                    activations = engine.executor().disk_description();
  const auto line = [&](Offload tier, const char* what, const std::string& file) {
    if (tier != Offload::none)
      log_line(log, "offload   {} {}", what, tier == Offload::host ? "in host memory" : file);
  };
  line(o.offload_optimizer, "optimizer states", states);
  line(o.offload_parameters, "parameters", states);
  if (engine.step_plan().stored_bytes > 0)
    line(o.offload_activations, "activations", activations);
  else if (o.offload_activations != Offload::none)
    log_line(log, "offload   no activations: none stays long enough to leave and come back");
  if (o.delayed_update > 0)
    log_line(log, "offload   updates run beside the next step from step {} on", o.delayed_update);
}

// Names what a resumed run changes of its stored configuration, and refuses other data.
void check_resumed(const RunState& before, const RunState& now, const OptionTable& table,
                   Log& log) {
  ModelConfig same = before.model;
  same.dropout = now.model.dropout;
  same.eos = now.model.eos;  // what ends texts follows from the data, which are compared below
  same.more_eos = now.model.more_eos;
  require(
      hf_config_text(same, DType::f32) == hf_config_text(now.model, DType::f32), ErrorKind::data,
      "the model is another one than the run began with: {} now, {} then; give the same --model",
      model_line(now.model), model_line(before.model));
  require(before.tokenizer.empty() || before.tokenizer == now.tokenizer, ErrorKind::data,
          "the tokenizer is another one than the run began with: {} now, {} then; leave "
          "--tokenizer out, or start a new run",
          now.tokenizer, before.tokenizer);
  require(before.data_identity == now.data_identity, ErrorKind::data,
          "the corpus is another one than the run began with: {} now, {} then; give the same "
          "--data, or start a new run from this checkpoint with --model",
          now.data_identity, before.data_identity);
  for (const OptionDifference& d : compare(before.configuration, table))
    log_line(log, "changed   {}: {} now, {} before", d.name, d.current, d.stored);
}

// The schedule is a function of the options as they are now, the run's length among them.
void print_rate_change(const RunState& before, const TrainOptions& o, Log& log) {
  if (before.configuration.empty() || before.step == o.run.steps) return;
  OptimizerOptions old;
  int64_t steps = RunOptions{}.steps;
  OptionTable table;
  declare_options(table, old);
  table.integer({"steps", "train-iters"}, &steps, "");
  read_stored(before.configuration, table);
  const double next = learning_rate(o.optimizer, before.step + 1, o.run.steps);
  if (next == learning_rate(old, before.step + 1, steps)) return;
  log_line(log,
           "rate      step {} was trained with {:.2e} (of {} steps), step {} is with {:.2e} (of {} "
           "steps)",
           before.step, learning_rate(old, before.step, steps), steps, before.step + 1, next,
           o.run.steps);
}

// Refuses to start when ranks would run other programs than planned, or programs that cannot
// complete.
void check_programs(const PlannedLayout& layout, const Engine& own, int micros,
                    Communicator& world) {
  const std::vector<RankProgram> programs = layout.programs();
  for (const RankProgram& rank : programs) check(rank.program, micros, rank.blocks);
  const std::vector<std::string> hashes = all_gather_texts(
      world, fmt::format("{:016x}", hash_text(to_string(own.step_plan().program))), "step program");
  for (int r = 0; r < world.size(); ++r)
    require(
        hashes[static_cast<size_t>(r)] ==
            fmt::format("{:016x}", hash_text(to_string(programs[static_cast<size_t>(r)].program))),
        ErrorKind::usage,
        "rank {} would run another step program than rank {} expects; start all ranks with the "
        "same options",
        r, world.rank());
  check_completes(programs);
}

double sum_over(Communicator& ranks, double value) {
  ranks.all_reduce({&value, DType::f64, Shape{1}}, Reduction::sum, "sum").wait();
  return value;
}

// Starts or resumes the weights and states; returns where the run stands.
RunState begin_run(const TrainOptions& o, const ModelSource& source, Engine& engine,
                   Trainer& trainer, Log& log) {
  RunState state;
  const std::string checkpoint = broadcast_text(
      *engine.mesh().world,
      o.stored && o.stored->newest.found ? o.stored->newest.found->folder.string() : "", 0,
      "checkpoint");
  if (!checkpoint.empty()) {
    state = resume(checkpoint, engine, trainer);
    require(state.step <= o.run.steps, ErrorKind::usage,
            "--steps {}: the run in '{}' is at step {} already; give more --steps to go on",
            o.run.steps, o.run.output.string(), state.step);
    log_line(log, "resumed   from step {} of '{}'", state.step, checkpoint);
    return state;
  }
  if (o.run.resume)
    log_line(log, "resumed   from step 0: the run stopped before its first checkpoint");
  if (source.kind == ModelSource::Kind::preset || o.from_scratch) {
    warn_of(source, log);
    engine.store().initialise(o.run.seed);
  } else {
    load_weights_from(source, engine, log);
  }
  return state;
}

MemoryLimits memory_limits(const TrainOptions& o, int local_ranks) {
  return {.all = o.run.memory_limit > 0 ? o.run.memory_limit : memory_share(local_ranks),
          .device = o.run.device_memory,
          .host = o.run.host_memory};
}

// What a run writes into its folder besides metrics and checkpoints.
void write_run_files(const TrainOptions& o, const RunState& state, const ExtraFiles& files) {
  for (const auto& [name, text] : files) write_text_atomically(o.run.output / name, text);
  write_text_atomically(o.run.output / "config.toml", sealed_configuration(state.configuration));
}

// What a run works on.
struct RunInputs {
  const OptionTable& table;
  const ModelSource& source;
  const TrainingText& text;
  const TrainingData& data;
  const Loader& loader;
};

// The run itself, once its plan is accepted and its data are there.
int run_training(const TrainOptions& o, const RunInputs& in, Engine& engine, Log& log) {
  Communicator& ranks = *engine.mesh().world;
  Ops& ops = engine.executor().ops();
  const DType dtype = compute_dtype(o.run.precision, ops);
  const double peak = sum_over(ranks, fastest_product(ops, dtype, 1).flops);
  engine.allocate();
  print_offload(log, o.parallel, engine);
  Trainer trainer(engine, {o.optimizer, o.run.steps, o.run.seed, dtype == DType::f16});

  const RunState before = begin_run(o, in.source, engine, trainer, log);
  RunState state = before;
  state.model = engine.config();
  state.tokenizer = in.text.tokenizer ? in.text.tokenizer->identity() : "";
  state.data_identity = in.data.identity();
  state.configuration = to_toml(in.table);
  if (before.step > 0) {
    state.data_identity = in.data.identity_like(before.data_identity);
    check_resumed(before, state, in.table, log);
    state.data_identity = in.data.identity();
    print_rate_change(before, o, log);
  }
  if (in.text.tokenizer) warn_of(in.text.tokenizer->bpe(), state.model.vocabulary, log);
  const ExtraFiles files = run_files(in.text, in.source, o.from_scratch);
  if (ranks.rank() == 0) write_run_files(o, state, files);
  log_line(log, "run       '{}', configuration in config.toml", o.run.output.string());

  const StopSignal stop;
  TrainLoop loop({engine, trainer, in.loader, o.run, log, stop, peak, files}, state);
  const int signal = loop.run();
  const auto newest = newest_checkpoint(o.run.output).found;
  log_line(log, "{} at step {} of {}; newest checkpoint '{}'", signal != 0 ? "stopped" : "finished",
           loop.state().step, o.run.steps, newest ? newest->folder.string() : "none");
  return 0;
}

int train_on(const Rank& rank, TrainOptions o, const OptionTable& table) {
  Log log(rank.world.rank() == 0 ? stderr : nullptr);
  std::optional<RunFolder> folder;
  if (rank.world.rank() == 0) {
    folder.emplace(RunFolder::Wanted{o.run.output, o.model, o.stored ? &*o.stored : nullptr});
    for (const std::string& note : folder->notes()) log.write(note);
  }
  if (o.stored)
    for (const std::string& warning : o.stored->warnings) warn_line(log, "{}", warning);
  const auto ops = make_backend({o.run.device, rank.threads, o.run.instruction_set}).ops;
  const DType dtype = compute_dtype(o.run.precision, *ops);
  const DataSource found = find_data(o.data);
  // What a run has begun with it goes on with.
  if (!o.run.resume) require_distinct(found.files());
  refuse_idle_options(table, found.files());
  const ModelSource source = open_model(o.model);
  const TrainingText text = training_text(o, source, found);
  const std::optional<TextTokenizer>& tokenizer = text.tokenizer;
  if (tokenizer && tokenizer->is_bytes() && readable_as_bytes(found.files()))
    refuse_without_effect(table, {"begin-token", "end-token", "data-cache"},
                          "on text that is read as its bytes");
  ModelConfig config = training_config(o, source, tokenizer ? &*tokenizer : nullptr);
  add_all_ends(source, text, config);
  const Mesh mesh(rank.world, mesh_of(o.parallel, rank.world.size()),
                  kv_replicas(o.parallel, config));
  Communicator& ranks = *mesh.world;
  const BatchShape batch{o.run.global_batch_size, o.run.micro_batch_size, mesh.at(Axis::data),
                         mesh.data->size()};
  check(batch);

  const ExecutorSetup executor = training_setup(o, o.run.micro_batch_size, dtype);
  const auto micros = static_cast<int>(batch.micros());
  const PlannedLayout layout(layout_request(o, config, mesh.shape, executor, micros), *ops);
  Engine engine(*ops, config, executor,
                balanced_step(o.parallel, micros, mesh, config, *ops, executor.shape));
  check_programs(layout, engine, micros, ranks);
  const MemoryLimits limits = memory_limits(o, rank.local_ranks);
  if (!limits.hold(engine.plan()))
    require_memory(engine.plan(), limits, remedies(*ops, {o, config, dtype, limits, mesh.shape}));
  const TrainingData data = open_data(o, found, tokenizer, rank, ranks, log);
  for (const Corpus& corpus : data.corpora) corpus.data().check_vocabulary(config.vocabulary);
  const Loader loader(data.corpora, data.mix, batch, o.data.document_mask);

  o.run.output = broadcast_text(ranks, folder ? folder->path().string() : "", 0, "run");
  if (o.run.metrics.empty()) o.run.metrics = o.run.output / "metrics.jsonl";
  if (mesh.rank != 0) o.run.metrics.clear();
  const std::vector<std::string> machines = all_gather_texts(ranks, rank.machine, "machines");
  print_opening(log, o, config, data, text, *ops);
  print_ranks(log, o, layout, rank.world.description(), machines);
  log_line(
      log, "memory    {} planned{}\n{}",
      format_bytes(engine.plan().peak_bytes(Tier::device) + engine.plan().peak_bytes(Tier::host)),
      ranks.size() > 1 ? " for the first rank" : "", memory_table(engine.plan()));
  return run_training(o, {table, source, text, data, loader}, engine, log);
}

// Before ranks are started here: whether the plans of all of them fit.
void check_memory(TrainOptions o, const MeshShape& mesh) {
  derive_batch(o.run, mesh.degree_of(Axis::data));
  const auto ops = make_backend({o.run.device, threads_of_first_rank(o.run.threads, mesh.world()),
                                 o.run.instruction_set})
                       .ops;
  const DType dtype = compute_dtype(o.run.precision, *ops);
  const ModelSource source = open_model(o.model);
  const std::optional<TextTokenizer> tokenizer = training_tokenizer(o, source, find_data(o.data));
  const ModelConfig config = training_config(o, source, tokenizer ? &*tokenizer : nullptr);
  const BatchShape batch{o.run.global_batch_size, o.run.micro_batch_size, 0,
                         mesh.degree_of(Axis::data)};
  check(batch);
  const PlannedLayout layout(
      layout_request(o, config, mesh, training_setup(o, o.run.micro_batch_size, dtype),
                     batch.micros()),
      *ops);
  const MemoryLimits limits = memory_limits(o, mesh.world());
  for (int stage = 0; stage < mesh.degree_of(Axis::pipeline); ++stage)
    if (const MemoryPlan& plan = layout.of_stage_rank(stage).plan(); !limits.hold(plan))
      require_memory(plan, limits, remedies(*ops, {o, config, dtype, limits, mesh}));
}

}  // namespace

int run_train(const CommandArguments& arguments) {
  TrainOptions o;
  OptionTable table;
  declare_options(table, o);
  if (!parse_train_options(table, o, arguments)) return 0;
  require(!o.data.text.data.empty(), ErrorKind::usage,
          "--data is missing: text files, a folder of them, or token files to train on");
  settle(o, table);
  make_paths_absolute(o.data);
  const RanksJob job{o.parallel, o.run.threads, "train", arguments,
                     [&](const MeshShape& mesh) { check_memory(o, mesh); }};
  return on_ranks(job, [&](const Rank& rank) {
    derive_batch(o.run, data_degree_of(o.parallel, rank.world.size()));
    return train_on(rank, o, table);
  });
}

}  // namespace rankine
