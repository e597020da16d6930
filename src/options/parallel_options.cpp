#include "options/parallel_options.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/file.h"

namespace rankine {

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

}  // namespace rankine
