#include "options/run_options.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {

void declare_machine_options(OptionTable& table, const MachineOptions& o) {
  table.text({"device"}, o.device, "what computes: cpu, the only one there is", "NAME");
  table.integer({"threads"}, o.threads, "processor threads to compute with; 0: all there are",
                {.least = 0, .most = 4096});
  table.text({"instruction-set"}, o.instruction_set,
             "use no more than avx2, avx512 or avx512_bf16; empty: the best there is", "NAME");
}

void declare_precision_option(OptionTable& table, Precision& precision) {
  table.choice<Precision>({"precision"}, &precision,
                          {{"auto", Precision::automatic},
                           {"f32", Precision::f32},
                           {"bf16", Precision::bf16},
                           {"f16", Precision::f16}},
                          "dtype of activations and products; auto: bf16 where the processor "
                          "multiplies it natively, otherwise f32");
}

void declare_dropout_option(OptionTable& table, double& dropout) {
  table.real({"dropout", "hidden-dropout"}, &dropout,
             "probability on the embedding and both residual branches", {.least = 0, .most = 0.99});
}

void declare_options(OptionTable& table, RunOptions& o) {
  table.heading("Training");
  table.integer({"steps", "train-iters"}, &o.steps, "optimizer steps of the whole run",
                {.least = 1});
  table.integer({"seq-length"}, &o.seq_length, "tokens of one sequence",
                {.least = 1, .most = most_tokens});
  table.integer({"micro-batch-size"}, &o.micro_batch_size,
                "sequences computed at a time; of micro-batch, global batch and accumulation two "
                "give the third",
                {.least = 0, .most = most_sequences});
  table.integer({"global-batch-size"}, &o.global_batch_size, "sequences of one optimizer step",
                {.least = 0, .most = most_sequences * most_micros});
  table.integer({"accumulation", "gradient-accumulation-steps"}, &o.accumulation,
                "micro-batches whose gradients are summed", {.least = 0, .most = most_micros});
  declare_precision_option(table, o.precision);
  declare_dropout_option(table, o.dropout);
  table.integer({"seed"}, &o.seed, "of the initial weights, the order of samples and dropout",
                {.least = 0});
  table.integer(
      {"max-skipped-steps"}, &o.max_skipped_steps,
      "give the run up after so many steps in a row whose gradient is not finite, however "
      "small the loss scale, and name where that arises; 0: never",
      {.least = 0});
  table.heading("Machine");
  declare_machine_options(table, {&o.device, &o.threads, &o.instruction_set});
  table.bytes(
      {"memory-limit"}, &o.memory_limit,
      "refuse to start when a rank's plan needs more, all memory tiers together; 0: its share "
      "of the machine's memory");
  table.bytes({"device-memory"}, &o.device_memory,
              "likewise of the device tier, in which a step computes; 0: no limit of its own");
  table.bytes({"host-memory"}, &o.host_memory,
              "likewise of the host tier, to which offloading moves; 0: no limit of its own");
  table.heading("Output");
  table.path({"output", "save"}, &o.output,
             "folder of the run; empty: the first free runs/MODEL-N");
  table.flag({"resume"}, &o.resume,
             "continue the run in --output from its newest complete checkpoint");
  table.integer({"save-interval"}, &o.save_interval,
                "steps between checkpoints; 0: only at the end", {.least = 0});
  table.integer({"keep-checkpoints"}, &o.keep_checkpoints, "newest checkpoints to keep; 0: all",
                {.least = 0});
  table.integer({"eval-interval"}, &o.eval_interval,
                "steps between validations; 0: only at the end", {.least = 0});
  table.integer({"eval-batches", "eval-iters"}, &o.eval_batches, "micro-batches of one validation",
                {.least = 1});
  table.integer({"log-interval"}, &o.log_interval, "steps between log lines", {.least = 1});
  table.path({"metrics"}, &o.metrics,
             "file of one JSON object per step; empty: metrics.jsonl in the run's folder");
  // The stored batch is that of all ranks: on another number of them the same run accumulates anew.
  for (const char* name : {"output", "resume", "metrics", "accumulation"}) table.do_not_store(name);
}

DType compute_dtype(Precision precision, const Ops& ops) {
  switch (precision) {
    case Precision::f32:
      return DType::f32;
    case Precision::bf16:
      return DType::bf16;
    case Precision::f16:
      return DType::f16;
    case Precision::automatic:
      break;
  }
  return ops.native(DType::bf16) ? DType::bf16 : DType::f32;
}

void derive_batch(RunOptions& o, int64_t data_degree) {
  int64_t &micro = o.micro_batch_size, &global = o.global_batch_size, &sum = o.accumulation;
  if (micro == 0 && global == 0) micro = 8;
  if (micro == 0 && sum == 0)
    micro = std::max<int64_t>(1, std::min<int64_t>(8, global / data_degree));
  if (sum == 0 && global == 0) sum = 1;
  if (global == 0) global = micro * sum * data_degree;
  if (micro == 0) micro = global / (sum * data_degree);
  if (sum == 0) sum = global / (micro * data_degree);
  require(micro > 0 && sum > 0 && global == micro * sum * data_degree, ErrorKind::usage,
          "--global-batch-size {} does not equal --micro-batch-size {} x --accumulation {} x "
          "{} data-parallel ranks; leave one of the three out to have it derived, or choose a "
          "multiple",
          global, micro, sum, data_degree);
  require(sum * data_degree <= most_micros, ErrorKind::usage,
          "--accumulation {} x {} data-parallel ranks are {} micro-batches a step; at most {} are "
          "possible: choose a larger --micro-batch-size or a smaller --global-batch-size",
          sum, data_degree, sum * data_degree, most_micros);
}

}  // namespace rankine
