#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "command.h"
#include "model_source.h"
#include "ops/timed_ops.h"
#include "runtime/options.h"
#include "runtime/peak.h"
#include "runtime/process.h"
#include "runtime/trainer.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  std::string model = "gpt2", precision = "f32,bf16", instruction_set;
  int64_t seq_length = 1024, micro_batch_size = 4, accumulation = 1, steps = 5, threads = 0;
  uint64_t memory_limit = 0;
  bool profile = false;
  std::filesystem::path json;
};

OptionTable declare(BenchOptions& o) {
  OptionTable table;
  table.heading("Training step");
  table.text({"model"}, &o.model, "a preset or a model's folder, for its shape", "NAME");
  table.integer({"seq-length"}, &o.seq_length, "tokens of one sequence", {.least = 1});
  table.integer({"micro-batch-size"}, &o.micro_batch_size, "sequences computed at a time",
                {.least = 1});
  table.integer({"accumulation"}, &o.accumulation, "micro-batches of a step", {.least = 1});
  table.text({"precision"}, &o.precision, "comma-separated: f32, bf16, f16", "LIST");
  table.integer({"steps"}, &o.steps, "measured steps, after two to warm up; medians are reported",
                {.least = 1});
  table.flag({"profile"}, &o.profile,
             "time every operation too, and print what the last step was made of");
  table.heading("Machine");
  declare_machine_options(table, o.threads, o.instruction_set);
  table.bytes({"memory-limit"}, &o.memory_limit,
              "refuse to start when the plan needs more; 0: the machine's memory");
  table.path({"json"}, &o.json, "write the figures as JSON to this file");
  return table;
}

std::vector<DType> precisions(const std::string& list) {
  std::vector<DType> out;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string word = list.substr(begin, end - begin);
    bool known = false;
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      if (word == dtype_name(dtype)) {
        out.push_back(dtype);
        known = true;
      }
    require(known, ErrorKind::usage,
            "--precision '{}': write f32, bf16 or f16, separated by commas", word);
    begin = end + 1;
  }
  return out;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int32_t>(philox(random_key(1, "bench"), i)[0] %
                                  static_cast<uint64_t>(vocabulary));
  return ids;
}

// AdamW alone over all parameters, in bytes per second: 28 bytes an element, 30 with a 16-bit copy.
double measure_adamw(Engine& engine, int rounds) {
  std::vector<double> seconds;
  Ops& ops = engine.executor().ops();
  const AdamWStep step = adamw_step({}, 1, 0, 1);
  for (int round = 0; round < rounds; ++round) {
    const double start = monotonic_seconds();
    engine.store().update(step);
    ops.synchronize();
    seconds.push_back(monotonic_seconds() - start);
  }
  const double bytes = engine.setup().compute == DType::f32 ? 28 : 30;
  return bytes * static_cast<double>(engine.store().elements()) / median(seconds);
}

constexpr double peak_window_seconds = 2;

struct StepFigures {
  double seconds, tokens_per_second, mfu, mfu_undisturbed, peak_flops, adamw_bytes;
  uint64_t peak_bytes, planned_bytes, resident_bytes;
  std::vector<TimedOps::Line> profile;
};

StepFigures measure_training(const BenchOptions& o, const ModelConfig& config, DType dtype) {
  const auto cpu_ops = make_cpu_ops(static_cast<int>(o.threads), o.instruction_set);
  TimedOps timed(*cpu_ops);
  Ops* ops = o.profile ? static_cast<Ops*>(&timed) : cpu_ops.get();
  const auto peak_ops = make_cpu_ops(static_cast<int>(o.threads), o.instruction_set);
  const Program program = accumulation_program(static_cast<int>(o.accumulation));
  Engine engine(*ops, config,
                {.shape = {o.micro_batch_size, o.seq_length},
                 .compute = dtype,
                 .purpose = Purpose::training,
                 .positions = o.seq_length},
                {.computations = program});
  require_memory(engine.plan(), o.memory_limit > 0 ? o.memory_limit : physical_memory(),
                 "to make it fit: a smaller --micro-batch-size, --seq-length or --model");
  engine.allocate();
  engine.store().initialise(1);
  Trainer trainer(engine.executor(), engine.store(), {{}, 1000, 1, dtype == DType::f16});
  const int64_t tokens = o.micro_batch_size * o.seq_length * o.accumulation;
  const std::vector<int32_t> ids = random_tokens(tokens + 1, config.vocabulary);
  const auto count = static_cast<size_t>(tokens);
  const std::span<const int32_t> inputs = std::span(ids).first(count),
                                 targets = std::span(ids).subspan(1);
  const double flops = training_flops_per_token(config, o.seq_length) * static_cast<double>(tokens);
  std::vector<double> seconds, shares, peaks;
  uint64_t resident = 0;
  // A step is held against the products' mean rate over windows right before and after it, so that
  // what disturbs the machine for seconds disturbs both.
  const Product product = fastest_product(*peak_ops, dtype, 3);
  double before = sustained_product_flops(*peak_ops, product, peak_window_seconds);
  for (int64_t step = 1; step <= o.steps + 2; ++step) {
    const double start = monotonic_seconds();
    timed.reset();
    trainer.step(step, inputs, targets);
    const double taken = monotonic_seconds() - start;
    if (step == 1) resident = resident_memory().now;
    const double after = sustained_product_flops(*peak_ops, product, peak_window_seconds);
    const double peak = 2 / (1 / before + 1 / after);
    before = after;
    if (step <= 2) continue;
    seconds.push_back(taken);
    peaks.push_back(peak);
    shares.push_back(flops / taken / peak);
  }
  const std::vector<TimedOps::Line> profile = timed.lines();
  return {median(seconds),
          static_cast<double>(tokens) / median(seconds),
          median(shares),
          flops / std::ranges::min(seconds) / std::ranges::max(peaks),
          median(peaks),
          measure_adamw(engine, 7),
          engine.arena().peak_bytes(),
          engine.plan().peak_bytes(Tier::device),
          resident,
          profile};
}

void print_profile(const StepFigures& f) {
  for (const TimedOps::Line& line : f.profile)
    if (line.seconds > 0.0005 * f.seconds)
      fmt::print("  {:<20} {:>6} calls {:>9.1f} ms {:>5.1f} %\n", line.name, line.calls,
                 1e3 * line.seconds, 100 * line.seconds / f.seconds);
}

Json to_json(const StepFigures& f) {
  return {{"seconds", f.seconds},
          {"tokens_per_second", f.tokens_per_second},
          {"mfu", f.mfu},
          {"mfu_undisturbed", f.mfu_undisturbed},
          {"peak_flops", f.peak_flops},
          {"peak_bytes", f.peak_bytes},
          {"planned_bytes", f.planned_bytes},
          {"resident_bytes", f.resident_bytes},
          {"adamw_bytes_per_second", f.adamw_bytes}};
}

}  // namespace

int run_bench(const Arguments& arguments) {
  BenchOptions o;
  OptionTable table = declare(o);
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine bench",
                               "Measures this machine, and a training step against it."));
    return 0;
  }
  const std::vector<DType> dtypes = precisions(o.precision);
  const ModelConfig config = open_model(o.model).config;
  require(o.seq_length <= config.positions, ErrorKind::usage,
          "--seq-length {} exceeds the model's {} positions", o.seq_length, config.positions);
  const auto ops = make_cpu_ops(static_cast<int>(o.threads), o.instruction_set);
  const double bandwidth = measure_stream_bytes(ops->threads(), 7);
  fmt::print(
      "machine    {}\nbandwidth  {:.1f} GB/s (4 streams read, 3 written)\nmodel      {}\n"
      "work       {} x {} tokens, accumulation {}\n",
      ops->description(), bandwidth / 1e9, model_line(config), o.micro_batch_size, o.seq_length,
      o.accumulation);
  Json json;
  json["machine"] = {{"description", ops->description()},
                     {"threads", ops->threads()},
                     {"bandwidth_bytes_per_second", bandwidth}};
  json["work"]["model"] = o.model;
  json["work"]["seq_length"] = o.seq_length;
  json["work"]["micro_batch_size"] = o.micro_batch_size;
  json["work"]["accumulation"] = o.accumulation;
  json["work"]["steps"] = o.steps;
  for (const DType dtype : dtypes) {
    const StepFigures f = measure_training(o, config, dtype);
    const std::string name(dtype_name(dtype));
    json["matmul_flops"][name] = f.peak_flops;
    json["train"][name] = to_json(f);
    fmt::print(
        "{:<5} peak {:.1f} GFLOP/s | step {:.3f} s | {:.0f} tokens/s | MFU {:.1f} % (fastest "
        "step against highest peak {:.1f} %) | AdamW "
        "{:.1f} GB/s = {:.0f} % of bandwidth | plan {} | resident {} ({:+.1f} %)\n",
        name, f.peak_flops / 1e9, f.seconds, f.tokens_per_second, 100 * f.mfu,
        100 * f.mfu_undisturbed, f.adamw_bytes / 1e9, 100 * f.adamw_bytes / bandwidth,
        format_bytes(f.planned_bytes), format_bytes(f.resident_bytes),
        100 * (static_cast<double>(f.resident_bytes) / static_cast<double>(f.planned_bytes) - 1));
    print_profile(f);
    std::fflush(stdout);
  }
  if (!o.json.empty()) write_text_atomically(o.json, json.dump(2) + "\n");
  return 0;
}

}  // namespace rankine
