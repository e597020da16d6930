#include "bench/bench.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "command.h"
#include "library/layout.h"
#include "library/model_source.h"
#include "library/outputs.h"
#include "machine/peak.h"
#include "ops/backend.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;

OptionTable declare(BenchOptions& o) {
  OptionTable table;
  table.heading("Training step");
  table.text({"model"}, &o.model, "a preset or a model's folder, for its shape", "NAME");
  table.integer({"seq-length"}, &o.seq_length, "tokens of one sequence",
                {.least = 1, .most = most_tokens});
  table.integer({"micro-batch-size"}, &o.micro_batch_size, "sequences computed at a time",
                {.least = 1, .most = most_sequences});
  table.integer({"accumulation"}, &o.accumulation, "micro-batches of a step",
                {.least = 1, .most = most_micros});
  table.text({"precision"}, &o.precision, "comma-separated: f32, bf16, f16", "LIST");
  table.integer({"steps"}, &o.steps, "measured steps, after two to warm up; medians are reported",
                {.least = 1});
  table.flag({"profile"}, &o.profile,
             "time every operation too, and print what the last step was made of");
  table.heading("Generation");
  table.integer({"generate"}, &o.generate,
                "measure writing this many tokens instead of training steps, against reading as "
                "many bytes as the weights and caches have",
                {.least = 0});
  table.integer({"batch-size"}, &o.batch_size, "texts written at once", {.least = 1, .most = 256});
  table.heading("Machine");
  declare_machine_options(table, {&o.device, &o.threads, &o.instruction_set});
  table.bytes({"memory-limit"}, &o.memory_limit,
              "refuse to start when the plan needs more; 0: the machine's memory");
  table.path({"json"}, &o.json, "write the figures as JSON to this file");
  declare_options(table, o.parallel);
  table.heading("Communication");
  table.texts({"collectives"}, &o.collectives,
              "measure collectives of these sizes between --ranks instead of training steps, "
              "against copying as many bytes",
              "SIZE");
  table.heading("Disk");
  table.path({"disk"}, &o.disk,
             "measure direct reading and writing in this folder instead of training steps, against "
             "fio where that is installed");
  table.bytes({"disk-size"}, &o.disk_bytes, "bytes of the file it makes there");
  table.heading("Text");
  table.paths(
      {"text"}, &o.text.data,
      "measure reading these files' text as JSON lines, encoding it and training a tokenizer "
      "of 4096 tokens on it, by one thread each, instead of training steps");
  table.text({"tokenizer"}, &o.tokenizer,
             "to encode it with: bytes, a tokenizer.json, or a folder with one", "NAME");
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

void print_profile(const StepFigures& f) {
  for (const TimedOps::Line& line : f.profile)
    if (line.seconds > 0.0005 * f.seconds)
      fmt::print("  {:<20} {:>6} calls {:>9.1f} ms {:>5.1f} %\n", line.name, line.calls,
                 1e3 * line.seconds, 100 * line.seconds / f.seconds);
}

void print_tiers(const StepFigures& f) {
  for (const auto& [name, use] : {std::pair("host", f.tiers.host), std::pair("disk", f.tiers.disk)})
    if (use.bytes_read + use.bytes_written > 0)
      fmt::print("  {}: read {}, written {}, waited for it {:.2f} s of the last step\n", name,
                 format_bytes(use.bytes_read), format_bytes(use.bytes_written),
                 use.exposed_seconds);
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
          {"most_resident_bytes", f.most_resident_bytes},
          {"bytes_sent",
           {{"pipeline", f.traffic.pipeline.bytes_sent},
            {"data", f.traffic.data.bytes_sent},
            {"tensor", f.traffic.tensor.bytes_sent}}},
          {"exposed_seconds",
           {{"pipeline", f.traffic.pipeline.exposed_seconds},
            {"data", f.traffic.data.exposed_seconds},
            {"tensor", f.traffic.tensor.exposed_seconds}}},
          {"tiers", to_json(f.tiers)},
          {"adamw_bytes_per_second", f.adamw_bytes},
          {"adamw_share_of_bandwidth", f.adamw_share}};
}

// Prints and notes the figures of every size.
Json bench_collectives(const BenchOptions& o, const Rank& rank) {
  const bool speaks = rank.world.rank() == 0;
  Json json;
  if (speaks)
    fmt::print(
        "{} ranks: {}\nmilliseconds, and the time of copying as many bytes over it\n"
        "{:>10} {:>9} {:>17} {:>17} {:>17} {:>22}\n",
        rank.world.size(), rank.world.description(), "size", "copy", "all_reduce", "reduce_scatter",
        "all_gather", "all_reduce bf16 (x)");
  for (const std::string& text : o.collectives) {
    const CollectiveFigures f = measure_collectives(parse_bytes(text, "--collectives"), rank);
    const auto cell = [&](double seconds, double share) {
      return fmt::format("{:.2f} ({:.0f} %)", 1e3 * seconds, 100 * share);
    };
    if (speaks)
      fmt::print("{:>10} {:>9.2f} {:>17} {:>17} {:>17} {:>22}\n", format_bytes(f.bytes),
                 1e3 * f.copy, cell(f.all_reduce, f.all_reduce_share),
                 cell(f.reduce_scatter, f.reduce_scatter_share),
                 cell(f.all_gather, f.all_gather_share),
                 fmt::format("{:.2f} ({:.2f} x)", 1e3 * f.all_reduce_bf16, f.bf16_speedup));
    std::fflush(stdout);
    json.push_back({{"bytes", f.bytes},
                    {"copy_seconds", f.copy},
                    {"all_reduce_seconds", f.all_reduce},
                    {"reduce_scatter_seconds", f.reduce_scatter},
                    {"all_gather_seconds", f.all_gather},
                    {"all_reduce_bf16_seconds", f.all_reduce_bf16},
                    {"all_reduce_share_of_copy", f.all_reduce_share},
                    {"reduce_scatter_share_of_copy", f.reduce_scatter_share},
                    {"all_gather_share_of_copy", f.all_gather_share},
                    {"bf16_speedup", f.bf16_speedup}});
  }
  return json;
}

// Prints and notes the rate of writing text in each precision.
Json bench_generating(const BenchOptions& o, const ModelConfig& config,
                      const std::vector<DType>& dtypes) {
  Json json;
  for (const DType dtype : dtypes) {
    const GenerateFigures f = measure_generating(o, config, dtype);
    fmt::print(
        "{:<5} {:.1f} tokens/s in {} | {:.2f} ms a token | reads {} of weights, {} of keys and "
        "values | memory {:.2f} GB/s | {:.0f} % of reading them\n",
        dtype_name(dtype), f.tokens_per_second,
        o.batch_size == 1 ? std::string("one text") : fmt::format("{} texts", o.batch_size),
        1e3 * f.seconds, format_bytes(static_cast<uint64_t>(f.weight_bytes)),
        format_bytes(static_cast<uint64_t>(f.cache_bytes)), f.read_bytes_per_second / 1e9,
        100 * f.share);
    for (const TimedOps::Line& line : f.profile)
      fmt::print("  {:<20} {:>6} calls {:>9.2f} ms\n", line.name, line.calls, 1e3 * line.seconds);
    std::fflush(stdout);
    json["generate"][std::string(dtype_name(dtype))] = {
        {"batch_size", o.batch_size},
        {"seconds", f.seconds},
        {"tokens_per_second", f.tokens_per_second},
        {"weight_bytes", f.weight_bytes},
        {"cache_bytes", f.cache_bytes},
        {"read_bytes_per_second", f.read_bytes_per_second},
        {"share_of_reading", f.share},
        {"planned_bytes", f.planned_bytes}};
  }
  return json;
}

// Prints and notes the rates of the disk tier.
Json bench_disk(const BenchOptions& o) {
  const DiskFigures f = measure_disk(o.disk, o.disk_bytes);
  fmt::print("disk       {} in '{}', {}, {}\n", format_bytes(f.bytes), o.disk.string(), f.engine,
             f.direct ? "direct" : "through the page cache");
  Json json = {{"bytes", f.bytes}, {"engine", f.engine}, {"direct", f.direct}};
  for (const auto& [name, way] : {std::pair("write", f.write), std::pair("read", f.read)}) {
    json[name] = {{"bytes_per_second", way.bytes_per_second}};
    if (f.fio_engine.empty()) {
      fmt::print("{:<10} {:.3f} GB/s\n", name, way.bytes_per_second / 1e9);
      continue;
    }
    fmt::print("{:<10} {:.3f} GB/s | fio ({}) {:.3f} GB/s | {:.0f} % of fio\n", name,
               way.bytes_per_second / 1e9, f.fio_engine, way.fio_bytes_per_second / 1e9,
               100 * way.share);
    json[name]["fio_bytes_per_second"] = way.fio_bytes_per_second;
    json[name]["share_of_fio"] = way.share;
  }
  if (f.fio_engine.empty())
    fmt::print("fio is not installed, so there is nothing to compare with\n");
  return {{"disk", json}};
}

// Prints and notes the rates of one thread over text.
Json bench_text(const BenchOptions& o) {
  const TextFigures f = measure_text(o);
  const auto rate = [](uint64_t bytes, double seconds) {
    return static_cast<double>(bytes) / seconds;
  };
  const double lines = rate(f.lines_bytes, f.lines_seconds),
               encoding = rate(f.text_bytes, f.encode_seconds);
  fmt::print(
      "text       {}, one thread\nJSON lines {:.0f} MB/s\nencoding   {:.1f} MB/s ({}, {:.2f} bytes "
      "a token)\ntraining   {} tokens in {:.2f} s\n",
      format_bytes(f.text_bytes), lines / 1e6, encoding / 1e6, o.tokenizer,
      static_cast<double>(f.text_bytes) / static_cast<double>(f.tokens), f.trained_vocabulary,
      f.train_seconds);
  return {{"text",
           {{"bytes", f.text_bytes},
            {"json_lines_bytes_per_second", lines},
            {"encoding_bytes_per_second", encoding},
            {"tokenizer", o.tokenizer},
            {"tokens", f.tokens},
            {"trained_vocabulary", f.trained_vocabulary},
            {"training_seconds", f.train_seconds}}}};
}

void write_json(const BenchOptions& o, Json json) {
  json[report_key] = report_program;
  if (!o.json.empty()) write_text_atomically(o.json, json.dump(2) + "\n");
}

void print_machine(const BenchOptions& o, const ModelConfig& config, const Rank& rank,
                   const Ops& ops, double bandwidth) {
  fmt::print(
      "machine    {}\nbandwidth  {:.1f} GB/s (4 streams read, 3 written)\nmodel      {}\n"
      "work       {} x {} tokens, accumulation {}{}\n",
      ops.description(), bandwidth / 1e9, model_line(config), o.micro_batch_size, o.seq_length,
      o.accumulation,
      rank.world.size() > 1 ? ", " + layout_line(o.parallel, rank.world.size()) : "");
}

Json bench_training(const BenchOptions& o, const ModelConfig& config,
                    const std::vector<DType>& dtypes, const Rank& rank) {
  const bool speaks = rank.world.rank() == 0;
  const auto ops = make_backend({o.device, rank.threads, o.instruction_set}).ops;
  const double bandwidth = measure_stream_bytes(ops->threads(), 7);
  if (speaks) print_machine(o, config, rank, *ops, bandwidth);
  Json json;
  json["machine"] = {{"description", ops->description()},
                     {"threads", ops->threads()},
                     {"ranks", rank.world.size()},
                     {"bandwidth_bytes_per_second", bandwidth}};
  json["work"] = {{"model", o.model},
                  {"seq_length", o.seq_length},
                  {"micro_batch_size", o.micro_batch_size},
                  {"accumulation", o.accumulation},
                  {"zero", o.parallel.zero},
                  {"tensor_parallel", o.parallel.tensor_parallel},
                  {"sequence_parallel", o.parallel.sequence_parallel},
                  {"pipeline_parallel", o.parallel.pipeline_parallel},
                  {"schedule", o.parallel.schedule},
                  {"steps", o.steps}};
  for (const DType dtype : dtypes) {
    const StepFigures f = measure_training(o, config, dtype, rank);
    const std::string name(dtype_name(dtype));
    json["matmul_flops"][name] = f.peak_flops;
    json["train"][name] = to_json(f);
    if (!speaks) continue;
    fmt::print(
        "{:<5} peak {:.1f} GFLOP/s | step {:.3f} s | {:.0f} tokens/s | MFU {:.1f} % (fastest "
        "step against highest peak {:.1f} %) | AdamW "
        "{:.1f} GB/s = {:.0f} % of bandwidth | plan {} | resident {} ({:+.1f} %)\n",
        name, f.peak_flops / 1e9, f.seconds, f.tokens_per_second, 100 * f.mfu,
        100 * f.mfu_undisturbed, f.adamw_bytes / 1e9, 100 * f.adamw_share,
        format_bytes(f.planned_bytes), format_bytes(f.most_resident_bytes),
        100 * (static_cast<double>(f.most_resident_bytes) / static_cast<double>(f.planned_bytes) -
               1));
    print_profile(f);
    print_tiers(f);
    std::fflush(stdout);
  }
  return json;
}

}  // namespace

int run_bench(const CommandArguments& arguments) {
  BenchOptions o;
  OptionTable table = declare(o);
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine bench",
                               "Measures this machine, and a training step against it."));
    return 0;
  }
  require_replaceable(o.json, "json", is_own_report);
  const BenchMode mode = bench_mode(table);
  check_threads(o.threads);
  if (mode == BenchMode::disk || mode == BenchMode::text) {
    write_json(o, mode == BenchMode::disk ? bench_disk(o) : bench_text(o));
    return 0;
  }
  const std::vector<DType> dtypes = precisions(o.precision);
  const ModelConfig config = open_model(o.model).config;
  if (mode == BenchMode::generate) {
    write_json(o, bench_generating(o, config, dtypes));
    return 0;
  }
  for (const std::string& size : o.collectives) parse_bytes(size, "--collectives");
  require(o.seq_length <= config.positions, ErrorKind::usage,
          "--seq-length {} exceeds the model's {} positions", o.seq_length, config.positions);
  const auto check_all = [&](const MeshShape& mesh) {
    for (const DType dtype : mode == BenchMode::training ? dtypes : std::vector<DType>{})
      check_memory(o, config, dtype, mesh);
  };
  const RanksJob job{o.parallel, o.threads, "bench", arguments, check_all};
  return on_ranks(job, [&](const Rank& rank) {
    const Json json = mode == BenchMode::training ? bench_training(o, config, dtypes, rank)
                                                  : bench_collectives(o, rank);
    if (rank.world.rank() == 0) write_json(o, json);
    return 0;
  });
}

}  // namespace rankine
