#include "base/file.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "command.h"
#include "runtime/peak.h"
#include "runtime/process.h"
#include "runtime/train_loop.h"
#include "train_setup.h"

namespace rankine {
namespace {

ExecutorSetup training_setup(const TrainOptions& o, int64_t micro_batch, DType dtype) {
  return {.shape = {micro_batch, o.run.seq_length},
          .compute = dtype,
          .purpose = Purpose::training,
          .positions = o.run.seq_length};
}

// The nearest settings whose plan fits the limit: smaller micro-batches with the same global batch,
// then also a 16-bit precision.
std::string remedies(Ops& ops, const TrainOptions& o, const ModelConfig& config, DType dtype,
                     uint64_t limit) {
  uint64_t least = 0;
  for (const DType candidate : {dtype, DType::bf16})
    for (int64_t micro = o.run.micro_batch_size / 2; micro > 0; micro /= 2) {
      if (o.run.global_batch_size % micro != 0) continue;
      least =
          Engine(ops, config, training_setup(o, micro, candidate)).plan().peak_bytes(Tier::device);
      if (least <= limit)
        return fmt::format(
            "it would fit with --micro-batch-size {} --accumulation {} --precision {}: {}", micro,
            o.run.global_batch_size / micro, dtype_name(candidate), format_bytes(least));
    }
  return fmt::format(
      "no micro-batch size fits{}; choose a smaller --seq-length (now {}) or --model",
      least > 0 ? fmt::format(" (the smallest needs {})", format_bytes(least)) : "",
      o.run.seq_length);
}

void print_opening(Log& log, const TrainOptions& o, const ModelConfig& config,
                   const TokenData& data, const Ops& ops, DType dtype) {
  log_line(log, "machine   {}", ops.description());
  log_line(log, "model     {}", model_line(config));
  log_line(log, "data      {} tokens in {} files", format_count(static_cast<double>(data.count())),
           data.files().size());
  log_line(log, "batch     {} sequences of {} tokens a step = micro-batch {} x accumulation {}",
           o.run.global_batch_size, o.run.seq_length, o.run.micro_batch_size, o.run.accumulation);
  log_line(log, "precision {}{}", dtype_name(dtype),
           ops.native(dtype) ? "" : " (this processor has no such products: they are done in f32)");
  for (const std::string& warning : data.warnings()) warn_line(log, "{}", warning);
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

}  // namespace

int run_train(const Arguments& arguments) {
  TrainOptions o;
  OptionTable table;
  declare_options(table, o);
  if (!parse_train_options(table, o, arguments)) return 0;
  require(!o.data.data.empty(), ErrorKind::usage,
          "--data is missing: text files, a folder of them, or token files to train on");
  derive_batch(o.run, 1);
  // The stored configuration works from any folder.
  for (std::filesystem::path& path : o.data.data) path = std::filesystem::absolute(path);
  Log log(stderr);

  const auto ops = make_cpu_ops(static_cast<int>(o.run.threads), o.run.instruction_set);
  const DType dtype = compute_dtype(o.run.precision, *ops);
  const TokenData data = TokenData::open(o.data);
  const ModelSource source = open_model(o.model);
  const ModelConfig config = training_config(o, source, data);
  const SampleOrder order({data.count(), static_cast<uint64_t>(o.run.seq_length),
                           static_cast<uint64_t>(o.run.global_batch_size),
                           o.data.validation_fraction, o.run.seed});
  const Loader loader(data, order, {o.run.global_batch_size, o.run.micro_batch_size, 0, 1});

  const Program program = accumulation_program(static_cast<int>(loader.micros()));
  check(program, static_cast<int>(loader.micros()));
  Engine engine(*ops, config, training_setup(o, o.run.micro_batch_size, dtype),
                peak_in_flight(program));
  const uint64_t limit = o.run.memory_limit > 0 ? o.run.memory_limit : physical_memory();
  if (engine.plan().peak_bytes(Tier::device) > limit)
    require_memory(engine.plan(), limit, remedies(*ops, o, config, dtype, limit));

  o.run.output = prepare_output(o);
  if (o.run.metrics.empty()) o.run.metrics = o.run.output / "metrics.jsonl";
  print_opening(log, o, config, data, *ops, dtype);
  log_line(log, "memory    {} planned\n{}", format_bytes(engine.plan().peak_bytes(Tier::device)),
           to_table(engine.plan(), Tier::device));
  const double peak = measure_matmul_flops(*ops, dtype, 3);
  engine.allocate();
  Trainer trainer(engine.executor(), engine.store(),
                  {program, o.optimizer, o.run.steps, o.run.seed, dtype == DType::f16});

  const std::string identity = data_identity(data);
  RunState state;
  if (o.run.resume) {
    const auto checkpoint = newest_complete_checkpoint(o.run.output);
    state = resume(*checkpoint, engine, trainer);
    check_resumed(state, table, identity, log);
    log_line(log, "resumed   from step {} of '{}'", state.step, checkpoint->string());
  } else if (source.kind == ModelSource::Kind::preset || o.from_scratch) {
    engine.store().initialise(*ops, o.run.seed);
  } else {
    load_weights_from(source, engine, log);
  }
  state.model = config;
  state.tokenizer = data.is_bytes() ? "bytes" : source.tokenizer;
  state.data_identity = identity;
  state.configuration = to_toml(table);
  write_text_atomically(o.run.output / "config.toml", state.configuration);
  log_line(log, "run       '{}', configuration in config.toml", o.run.output.string());

  const StopSignal stop;
  TrainLoop loop({engine, trainer, loader, o.run, log, stop, peak}, state);
  const int signal = loop.run();
  const auto newest = newest_complete_checkpoint(o.run.output);
  log_line(log, "{} at step {} of {}; newest checkpoint '{}'", signal != 0 ? "stopped" : "finished",
           loop.state().step, o.run.steps, newest ? newest->string() : "none");
  return 0;
}

}  // namespace rankine
