#include "runtime/step_setup.h"

#include "base/error.h"

namespace rankine {
namespace {

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

}  // namespace rankine
