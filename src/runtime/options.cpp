#include "runtime/options.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/file.h"

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

namespace {

void declare_tier_option(OptionTable& table, const char* name, Offload* value, const char* help) {
  table.choice<Offload>({name}, value,
                        {{"none", Offload::none}, {"host", Offload::host}, {"disk", Offload::disk}},
                        help);
}

void declare_memory_options(OptionTable& table, ParallelOptions& o) {
  table.choice<Recompute>(
      {"recompute", "recompute-granularity"}, &o.recompute,
      {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}},
      "what the backward makes again instead of keeping it: attention's output, or all of a layer "
      "but its input");
  table.integer({"recompute-layers", "recompute-num-layers"}, &o.recompute_layers,
                "of each stage, the first so many layers recompute; -1: all", {.least = -1});
  declare_tier_option(table, "offload-optimizer", &o.offload_optimizer,
                      "where master weights, Adam's states and sums of gradients lie and are "
                      "updated");
  declare_tier_option(table, "offload-parameters", &o.offload_parameters,
                      "where parameters lie from which the device gets a block's for each use");
  declare_tier_option(table, "offload-activations", &o.offload_activations,
                      "where what a block keeps for its backward lies until shortly before that");
  table.path({"offload-dir"}, &o.offload_dir,
             "folder on local storage for what is offloaded to disk");
  table.integer({"offload-prefetch"}, &o.offload_prefetch,
                "parameters and activations start to come back so many computations of a block "
                "before they are needed",
                {.least = 1, .most = 1 << 20});
  table.integer({"delayed-update"}, &o.delayed_update,
                "from this step on an offloaded update runs beside the next step, which computes "
                "with the parameters before it; 0: never",
                {.least = 0});
}

void check_memory_options(const ParallelOptions& o, const OffloadSetup& offload) {
  require(offload.on_disk() == !o.offload_dir.empty(), ErrorKind::usage,
          "--offload-optimizer, --offload-parameters or --offload-activations disk and "
          "--offload-dir FOLDER, on local storage, go together");
  require(o.recompute_layers < 0 || o.recompute != Recompute::none, ErrorKind::usage,
          "--recompute-layers {} needs --recompute selective or full", o.recompute_layers);
  require(o.delayed_update == 0 || offload.optimizer != Offload::none, ErrorKind::usage,
          "--delayed-update {} needs --offload-optimizer host or disk: on the device the update "
          "and the next step would take the same processor and memory in turn, and nothing could "
          "be won for parameters that are one update old",
          o.delayed_update);
  const bool loads = o.offload_parameters != Offload::none;
  require(
      o.gather_window == ParallelOptions{}.gather_window || o.zero == 3 || loads, ErrorKind::usage,
      "--gather-window {} is about parameters that come and go during a step: it needs --zero 3 "
      "or --offload-parameters",
      o.gather_window);
  require(o.offload_prefetch == ParallelOptions{}.offload_prefetch || loads ||
              o.offload_activations != Offload::none,
          ErrorKind::usage,
          "--offload-prefetch {} needs --offload-parameters or --offload-activations",
          o.offload_prefetch);
}

}  // namespace

void declare_layout_options(OptionTable& table, ParallelOptions& o) {
  table.integer({"data-parallel", "dp", "data-parallel-size"}, &o.data_parallel,
                "ranks that share a global batch; 0: all that the other degrees leave",
                {.least = 0, .most = 1 << 20});
  table.integer({"tensor-parallel", "tp", "tensor-model-parallel-size"}, &o.tensor_parallel,
                "ranks that split each layer: heads, feed-forward and vocabulary",
                {.least = 1, .most = 1 << 20});
  table.flag({"sequence-parallel", "sp"}, &o.sequence_parallel,
             "tensor ranks also split the tokens of norms, residuals and dropout");
  table.integer({"pipeline-parallel", "pp", "pipeline-model-parallel-size"}, &o.pipeline_parallel,
                "ranks that split the layers into stages", {.least = 1, .most = 1 << 20});
  table.text({"schedule", "pipeline-schedule"}, &o.schedule,
             "order of the pipeline's work: gpipe, 1f1b, interleaved, zero-bubble, zb-v, or a file "
             "that lists it",
             "NAME");
  table.integer({"virtual-stages"}, &o.virtual_stages,
                "stages of each rank in the interleaved schedule; 0: 2 there, otherwise 1",
                {.least = 0, .most = 1 << 10});
  table.text({"stage-layers"}, &o.stage_layers,
             "layers of each stage, as 5,6,6,5; empty: balanced by their work", "LIST");
  table.text({"mesh-order"}, &o.mesh_order, "axes from the outermost to that of neighbouring ranks",
             "AXES");
  table.integer({"zero", "zero-stage"}, &o.zero,
                "model states cut over the data-parallel ranks: 1 optimizer states, 2 also "
                "gradients, 3 also parameters",
                {.least = 0, .most = 3});
  table.integer(
      {"gather-window"}, &o.gather_window,
      "with --zero 3 or --offload-parameters: parameters stay gathered when one of so many "
      "next computations of a block needs them again",
      {.least = 1, .most = 1 << 20});
  declare_memory_options(table, o);
  table.bytes({"bucket-size"}, &o.bucket_size,
              "gradients (f32) that are sent together while the backward runs; 0: each block at "
              "once");
  table.flag({"strict"}, &o.strict,
             "the same bits for every number of data ranks that is a power of two, every pipeline, "
             "schedule and --zero, at equal micro-batches and threads");
}

void declare_options(OptionTable& table, ParallelOptions& o) {
  table.heading("Parallelism");
  table.integer({"ranks"}, &o.ranks,
                "start so many ranks on this machine; 0: one, or as many as a launcher (mpirun, "
                "srun) started",
                {.least = 0, .most = 1 << 20});
  table.integer({"oversubscribe"}, &o.oversubscribe,
                "with --ranks: refuse more of them than so many for each processor",
                {.least = 1, .most = ParallelOptions::most_oversubscribed});
  declare_layout_options(table, o);
  table.real({"comm-timeout"}, &o.comm_timeout,
             "seconds to wait for another rank before giving the job up; 0: for ever",
             {.least = 0});
  table.flag({"shared-memory"}, &o.shared_memory,
             "between the ranks of a host; otherwise everything goes over MPI");
  for (const char* name :
       {"ranks", "oversubscribe", "data-parallel", "comm-timeout", "shared-memory"})
    table.do_not_store(name);
}

int data_degree_of(const ParallelOptions& o, int world) {
  const int64_t others = o.tensor_parallel * o.pipeline_parallel;
  const int64_t data = o.data_parallel > 0 ? o.data_parallel : world / others;
  require(data * others == world, ErrorKind::usage,
          "{} rank{} cannot form --data-parallel {} x --tensor-parallel {} x --pipeline-parallel "
          "{}; their product must equal the number of ranks (leave --data-parallel out to have it "
          "derived)",
          world, world == 1 ? "" : "s",
          o.data_parallel > 0 ? std::to_string(o.data_parallel) : "(derived)", o.tensor_parallel,
          o.pipeline_parallel);
  return static_cast<int>(data);
}

MeshShape mesh_of(const ParallelOptions& o, int world) {
  return {{static_cast<int>(o.pipeline_parallel), data_degree_of(o, world),
           static_cast<int>(o.tensor_parallel)},
          parse_mesh_order(o.mesh_order)};
}

namespace {

Schedule schedule_of_file(const ParallelOptions& o, int micros) {
  ScheduleSource source{fmt::format("'{}'", o.schedule)};
  Schedule schedule = parse_schedule(read_text(o.schedule), source);
  const auto ranks = static_cast<int64_t>(schedule.ranks.size());
  require(ranks == o.pipeline_parallel && micros_of(schedule) == micros, ErrorKind::usage,
          "the schedule of '{}' is for {} ranks and {} micro-batches, but this run has "
          "--pipeline-parallel {} and {} micro-batches a step",
          o.schedule, ranks, micros_of(schedule), o.pipeline_parallel, micros);
  check(schedule, micros, source);
  return schedule;
}

}  // namespace

Schedule schedule_of(const ParallelOptions& o, int micros) {
  const std::vector<std::string> names = schedule_names();
  if (std::ranges::find(names, o.schedule) == names.end() && is_there(o.schedule)) {
    require(o.virtual_stages == 0, ErrorKind::usage,
            "--virtual-stages {} does not go with the schedule of '{}', which says it itself",
            o.virtual_stages, o.schedule);
    return schedule_of_file(o, micros);
  }
  const ScheduleKind kind = parse_schedule_kind(o.schedule);
  const int64_t stages = o.virtual_stages > 0                ? o.virtual_stages
                         : kind == ScheduleKind::interleaved ? 2
                                                             : 1;
  Schedule schedule = make_schedule(kind, {.ranks = static_cast<int>(o.pipeline_parallel),
                                           .micros = micros,
                                           .virtual_stages = static_cast<int>(stages)});
  check(schedule, micros);
  return schedule;
}

std::vector<int64_t> stage_layers_of(const ParallelOptions& o) {
  std::vector<int64_t> layers;
  const std::string& text = o.stage_layers;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    int64_t value = -1;
    const auto [stop, status] = std::from_chars(text.data() + at, text.data() + end, value);
    require(status == std::errc() && stop == text.data() + end && value >= 0, ErrorKind::usage,
            "--stage-layers '{}': '{}' is no number of layers; write for example 5,6,6,5", text,
            text.substr(at, end - at));
    layers.push_back(value);
    at = end + 1;
  }
  return layers;
}

StepSetup step_setup(const ParallelOptions& o, int micros, const Mesh& mesh) {
  require(!o.sequence_parallel || o.tensor_parallel > 1, ErrorKind::usage,
          "--sequence-parallel splits tokens over tensor-parallel ranks; give --tensor-parallel 2 "
          "or more");
  const OffloadSetup offload{.optimizer = o.offload_optimizer,
                             .parameters = o.offload_parameters,
                             .activations = o.offload_activations,
                             .folder = o.offload_dir,
                             .rank = mesh.rank,
                             .prefetch = static_cast<int>(o.offload_prefetch),
                             .delayed_update = o.delayed_update};
  check_memory_options(o, offload);
  return {.schedule = schedule_of(o, micros),
          .stage_layers = stage_layers_of(o),
          .zero = zero_stage(o.zero),
          .strict = o.strict,
          .sequence_parallel = o.sequence_parallel,
          .bucket_bytes = static_cast<int64_t>(o.bucket_size),
          .gather_window = static_cast<int>(o.gather_window),
          .recompute = o.recompute,
          .recompute_layers = o.recompute_layers,
          .offload = offload,
          .mesh = &mesh};
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
