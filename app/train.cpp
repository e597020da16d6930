#include "base/file.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "command.h"
#include "layout.h"
#include "ranks.h"
#include "remedies.h"
#include "runtime/peak.h"
#include "runtime/process.h"
#include "runtime/train_loop.h"
#include "schedule/simulate.h"
#include "train_data.h"
#include "train_setup.h"

namespace rankine {
namespace {

void print_opening(Log& log, const TrainOptions& o, const ModelConfig& config,
                   const TrainingData& data, const std::string& tokenizer, const Ops& ops) {
  const DType dtype = compute_dtype(o.run.precision, ops);
  log_line(log, "machine   {}", ops.description());
  log_line(log, "model     {}", model_line(config));
  log_line(log, "data      {} tokens in {} files, tokenizer {}",
           format_count(static_cast<double>(data.tokens())), data.files(),
           tokenizer.empty() ? "unknown" : tokenizer);
  const int64_t ranks = o.run.global_batch_size / (o.run.micro_batch_size * o.run.accumulation);
  log_line(log, "batch     {} sequences of {} tokens a step = micro-batch {} x accumulation {}{}",
           o.run.global_batch_size, o.run.seq_length, o.run.micro_batch_size, o.run.accumulation,
           ranks > 1 ? fmt::format(" x {} data-parallel ranks", ranks) : "");
  log_line(log, "precision {}{}", dtype_name(dtype),
           ops.native(dtype) ? "" : " (this processor has no such products: they are done in f32)");
  for (const std::string& warning : data.warnings()) warn_line(log, "{}", warning);
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
  if (o.run.resume) {
    Communicator& ranks = *engine.mesh().world;
    const auto newest = ranks.rank() == 0 ? newest_complete_checkpoint(o.run.output)->string() : "";
    const std::string checkpoint = broadcast_text(ranks, newest, 0, "checkpoint");
    state = resume(checkpoint, engine, trainer);
    log_line(log, "resumed   from step {} of '{}'", state.step, checkpoint);
  } else if (source.kind == ModelSource::Kind::preset || o.from_scratch) {
    warn_of(source, log);
    engine.store().initialise(o.run.seed);
  } else {
    load_weights_from(source, engine, log);
  }
  return state;
}

MemoryLimits memory_limits(const TrainOptions& o, const Rank& rank) {
  return {.all = o.run.memory_limit > 0
                     ? o.run.memory_limit
                     : physical_memory() / static_cast<uint64_t>(rank.local_ranks),
          .device = o.run.device_memory,
          .host = o.run.host_memory};
}

// What a run writes into its folder besides metrics and checkpoints.
void write_run_files(const TrainOptions& o, const RunState& state, const ExtraFiles& files) {
  for (const auto& [name, text] : files) write_text_atomically(o.run.output / name, text);
  write_text_atomically(o.run.output / "config.toml", state.configuration);
}

// What a run works on.
struct RunInputs {
  const OptionTable& table;
  const ModelSource& source;
  const TextTokenizer* tokenizer;  // may be null
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
  state.tokenizer = in.tokenizer != nullptr ? in.tokenizer->identity() : "";
  state.data_identity = in.data.identity();
  state.configuration = to_toml(in.table);
  if (o.run.resume) check_resumed(before, state, in.table, log);
  if (in.tokenizer != nullptr) warn_of(in.tokenizer->bpe(), state.model.vocabulary, log);
  const ExtraFiles files = in.tokenizer != nullptr ? in.tokenizer->files() : ExtraFiles{};
  if (ranks.rank() == 0) write_run_files(o, state, files);
  log_line(log, "run       '{}', configuration in config.toml", o.run.output.string());

  const StopSignal stop;
  TrainLoop loop({engine, trainer, in.loader, o.run, log, stop, peak, files}, state);
  const int signal = loop.run();
  const auto newest = newest_complete_checkpoint(o.run.output);
  log_line(log, "{} at step {} of {}; newest checkpoint '{}'", signal != 0 ? "stopped" : "finished",
           loop.state().step, o.run.steps, newest ? newest->string() : "none");
  return 0;
}

int train_on(const Rank& rank, TrainOptions o, const OptionTable& table) {
  check_output(o);
  const auto ops = make_cpu_ops(rank.threads, o.run.instruction_set);
  const DType dtype = compute_dtype(o.run.precision, *ops);
  const DataSource found = find_data(o.data);
  const ModelSource source = open_model(o.model);
  const std::optional<TextTokenizer> tokenizer = training_tokenizer(o, source, found);
  const ModelConfig config = training_config(o, source, tokenizer ? &*tokenizer : nullptr);
  const Mesh mesh(rank.world, mesh_of(o.parallel, rank.world.size()),
                  kv_replicas(o.parallel, config));
  Communicator& ranks = *mesh.world;
  Log log(mesh.rank == 0 ? stderr : nullptr);
  const BatchShape batch{o.run.global_batch_size, o.run.micro_batch_size, mesh.at(Axis::data),
                         mesh.data->size()};
  check(batch);

  const ExecutorSetup executor = training_setup(o, o.run.micro_batch_size, dtype);
  const auto micros = static_cast<int>(batch.micros());
  const PlannedLayout layout(layout_request(o, config, mesh.shape, executor, micros), *ops);
  Engine engine(*ops, config, executor,
                balanced_step(o.parallel, micros, mesh, config, *ops, executor.shape));
  check_programs(layout, engine, micros, ranks);
  const MemoryLimits limits = memory_limits(o, rank);
  if (!limits.hold(engine.plan()))
    require_memory(engine.plan(), limits, remedies(*ops, {o, config, dtype, limits, mesh.shape}));
  const TrainingData data = open_data(o, found, tokenizer, rank, ranks, log);
  for (const Corpus& corpus : data.corpora) corpus.data().check_vocabulary(config.vocabulary);
  const Loader loader(data.corpora, data.mix, batch, o.data.document_mask);

  o.run.output = broadcast_text(ranks, mesh.rank == 0 ? prepare_output(o).string() : "", 0, "run");
  if (o.run.metrics.empty()) o.run.metrics = o.run.output / "metrics.jsonl";
  if (mesh.rank != 0) o.run.metrics.clear();
  const std::vector<std::string> machines = all_gather_texts(ranks, rank.machine, "machines");
  print_opening(log, o, config, data, tokenizer ? tokenizer->identity() : "", *ops);
  print_ranks(log, o, layout, rank.world.description(), machines);
  log_line(
      log, "memory    {} planned{}\n{}",
      format_bytes(engine.plan().peak_bytes(Tier::device) + engine.plan().peak_bytes(Tier::host)),
      ranks.size() > 1 ? " for the first rank" : "", memory_table(engine.plan()));
  return run_training(o, {table, source, tokenizer ? &*tokenizer : nullptr, data, loader}, engine,
                      log);
}

}  // namespace

int run_train(const Arguments& arguments) {
  TrainOptions o;
  OptionTable table;
  declare_options(table, o);
  if (!parse_train_options(table, o, arguments)) return 0;
  require(!o.data.text.data.empty(), ErrorKind::usage,
          "--data is missing: text files, a folder of them, or token files to train on");
  make_paths_absolute(o.data);
  return on_ranks(o.parallel, o.run.threads, "train", arguments, [&](const Rank& rank) {
    derive_batch(o.run, data_degree_of(o.parallel, rank.world.size()));
    return train_on(rank, o, table);
  });
}

}  // namespace rankine
