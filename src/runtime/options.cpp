#include "runtime/options.h"

#include "base/error.h"

namespace rankine {

void declare_machine_options(OptionTable& table, int64_t& threads, std::string& instruction_set) {
  table.integer({"threads"}, &threads, "processor threads to compute with; 0: all there are",
                {.least = 0, .most = 4096});
  table.text({"instruction-set"}, &instruction_set,
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

void declare_options(OptionTable& table, RunOptions& o) {
  table.heading("Training");
  table.integer({"steps", "train-iters"}, &o.steps, "optimizer steps of the whole run",
                {.least = 1});
  table.integer({"seq-length"}, &o.seq_length, "tokens of one sequence", {.least = 1});
  table.integer({"micro-batch-size"}, &o.micro_batch_size,
                "sequences computed at a time; of micro-batch, global batch and accumulation two "
                "give the third",
                {.least = 0});
  table.integer({"global-batch-size"}, &o.global_batch_size, "sequences of one optimizer step",
                {.least = 0});
  table.integer({"accumulation", "gradient-accumulation-steps"}, &o.accumulation,
                "micro-batches whose gradients are summed", {.least = 0});
  declare_precision_option(table, o.precision);
  table.real({"dropout", "hidden-dropout"}, &o.dropout,
             "probability on the embedding and both residual branches", {.least = 0, .most = 0.99});
  table.integer({"seed"}, &o.seed, "of the initial weights, the order of samples and dropout",
                {.least = 0});
  table.heading("Machine");
  declare_machine_options(table, o.threads, o.instruction_set);
  table.bytes({"memory-limit"}, &o.memory_limit,
              "refuse to start when the plan needs more; 0: the machine's memory");
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

void declare_options(OptionTable& table, ParallelOptions& o) {
  table.heading("Parallelism");
  table.integer({"ranks"}, &o.ranks,
                "start so many ranks on this machine; 0: one, or as many as a launcher (mpirun, "
                "srun) started",
                {.least = 0, .most = 1 << 20});
  table.integer({"data-parallel", "dp", "data-parallel-size"}, &o.data_parallel,
                "ranks that share a global batch; 0: all", {.least = 0, .most = 1 << 20});
  table.integer({"zero", "zero-stage"}, &o.zero,
                "model states cut over the data-parallel ranks: 1 optimizer states, 2 also "
                "gradients, 3 also parameters",
                {.least = 0, .most = 3});
  table.bytes({"bucket-size"}, &o.bucket_size,
              "gradients (f32) that are sent together while the backward runs; 0: each block at "
              "once");
  table.flag({"strict"}, &o.strict,
             "the same bits for every number of ranks that is a power of two and every --zero, at "
             "equal micro-batches and threads");
  table.real({"comm-timeout"}, &o.comm_timeout,
             "seconds to wait for another rank before giving the job up; 0: for ever",
             {.least = 0});
  table.flag({"shared-memory"}, &o.shared_memory,
             "between the ranks of a host; otherwise everything goes over MPI");
  for (const char* name : {"ranks", "data-parallel", "comm-timeout", "shared-memory"})
    table.do_not_store(name);
}

MeshShape mesh_of(const ParallelOptions& o, int world) {
  require(o.data_parallel == 0 || o.data_parallel == world, ErrorKind::usage,
          "{} rank{} cannot form --data-parallel {}; the two must be equal (leave one of --ranks "
          "and --data-parallel out to have it derived)",
          world, world == 1 ? "" : "s", o.data_parallel);
  return {{1, world, 1}};
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
}

}  // namespace rankine
