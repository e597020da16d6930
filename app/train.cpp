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
#include "train_setup.h"

namespace rankine {
namespace {

void print_opening(Log& log, const TrainOptions& o, const ModelConfig& config,
                   const TokenData& data, const Ops& ops, DType dtype) {
  log_line(log, "machine   {}", ops.description());
  log_line(log, "model     {}", model_line(config));
  log_line(log, "data      {} tokens in {} files", format_count(static_cast<double>(data.count())),
           data.files().size());
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

// Names what a resumed run changes of its stored configuration, and refuses another corpus.
void check_resumed(const RunState& before, const OptionTable& table, const std::string& identity,
                   Log& log) {
  require(before.data_identity == identity, ErrorKind::data,
          "the corpus is another one than the run began with: {} now, {} then; give the same "
          "--data, or start a new run from this checkpoint with --model",
          identity, before.data_identity);
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
    engine.store().initialise(o.run.seed);
  } else {
    load_weights_from(source, engine, log);
  }
  return state;
}

int train_on(const Rank& rank, TrainOptions o, const OptionTable& table) {
  const auto ops = make_cpu_ops(rank.threads, o.run.instruction_set);
  const DType dtype = compute_dtype(o.run.precision, *ops);
  const TokenData data = TokenData::open(o.data);
  const ModelSource source = open_model(o.model);
  const ModelConfig config = training_config(o, source, data);
  const Mesh mesh(rank.world, mesh_of(o.parallel, rank.world.size()),
                  kv_replicas(o.parallel, config));
  Communicator& ranks = *mesh.world;
  Log log(mesh.rank == 0 ? stderr : nullptr);
  const SampleOrder order({data.count(), static_cast<uint64_t>(o.run.seq_length),
                           static_cast<uint64_t>(o.run.global_batch_size),
                           o.data.validation_fraction, o.run.seed});
  const Loader loader(
      data, order,
      {o.run.global_batch_size, o.run.micro_batch_size, mesh.at(Axis::data), mesh.data->size()});

  const ExecutorSetup executor = training_setup(o, o.run.micro_batch_size, dtype);
  const auto micros = static_cast<int>(loader.micros());
  const PlannedLayout layout(layout_request(o, config, mesh.shape, executor, micros), *ops);
  Engine engine(*ops, config, executor,
                balanced_step(o.parallel, micros, mesh, config, *ops, executor.shape));
  check_programs(layout, engine, micros, ranks);
  const MemoryLimits limits{
      .all = o.run.memory_limit > 0 ? o.run.memory_limit
                                    : physical_memory() / static_cast<uint64_t>(rank.local_ranks),
      .device = o.run.device_memory,
      .host = o.run.host_memory};
  if (!limits.hold(engine.plan()))
    require_memory(engine.plan(), limits, remedies(*ops, {o, config, dtype, limits, mesh.shape}));

  o.run.output = broadcast_text(ranks, mesh.rank == 0 ? prepare_output(o).string() : "", 0, "run");
  if (o.run.metrics.empty()) o.run.metrics = o.run.output / "metrics.jsonl";
  if (mesh.rank != 0) o.run.metrics.clear();
  const std::vector<std::string> machines = all_gather_texts(ranks, rank.machine, "machines");
  print_opening(log, o, config, data, *ops, dtype);
  print_ranks(log, o, layout, rank.world.description(), machines);
  log_line(
      log, "memory    {} planned{}\n{}",
      format_bytes(engine.plan().peak_bytes(Tier::device) + engine.plan().peak_bytes(Tier::host)),
      ranks.size() > 1 ? " for the first rank" : "", memory_table(engine.plan()));
  const double peak = sum_over(ranks, fastest_product(*ops, dtype, 1).flops);
  engine.allocate();
  print_offload(log, o.parallel, engine);
  Trainer trainer(engine, {o.optimizer, o.run.steps, o.run.seed, dtype == DType::f16});

  const std::string identity = data_identity(data);
  RunState state = begin_run(o, source, engine, trainer, log);
  if (o.run.resume) check_resumed(state, table, identity, log);
  state.model = config;
  state.tokenizer = data.is_bytes() ? "bytes" : source.tokenizer;
  state.data_identity = identity;
  state.configuration = to_toml(table);
  if (mesh.rank == 0) write_text_atomically(o.run.output / "config.toml", state.configuration);
  log_line(log, "run       '{}', configuration in config.toml", o.run.output.string());

  const StopSignal stop;
  TrainLoop loop({engine, trainer, loader, o.run, log, stop, peak}, state);
  const int signal = loop.run();
  const auto newest = newest_complete_checkpoint(o.run.output);
  log_line(log, "{} at step {} of {}; newest checkpoint '{}'", signal != 0 ? "stopped" : "finished",
           loop.state().step, o.run.steps, newest ? newest->string() : "none");
  return 0;
}

}  // namespace

int run_train(const Arguments& arguments) {
  TrainOptions o;
  OptionTable table;
  declare_options(table, o);
  if (!parse_train_options(table, o, arguments)) return 0;
  require(!o.data.data.empty(), ErrorKind::usage,
          "--data is missing: text files, a folder of them, or token files to train on");
  // The stored configuration works from any folder.
  for (std::filesystem::path& path : o.data.data) path = std::filesystem::absolute(path);
  return on_ranks(o.parallel, o.run.threads, "train", arguments, [&](const Rank& rank) {
    derive_batch(o.run, data_degree_of(o.parallel, rank.world.size()));
    return train_on(rank, o, table);
  });
}

}  // namespace rankine
