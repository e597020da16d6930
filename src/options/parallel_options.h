#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/options.h"
#include "comm/mesh_shape.h"
#include "schedule/passes.h"
#include "schedule/pipeline.h"
#include "state/offload.h"

namespace rankine {

// How ranks share the work; what is 0 is derived.
struct ParallelOptions {
  int64_t ranks = 0, data_parallel = 0, tensor_parallel = 1, pipeline_parallel = 1;
  bool sequence_parallel = false;
  std::string schedule = "1f1b";  // a name or a file
  int64_t virtual_stages = 0;     // per rank; 0: what the schedule needs at least
  std::string stage_layers = {};  // "5,6,6,5"; empty: balanced
  std::string mesh_order = "pipeline,data,tensor";
  int64_t gather_window = 2;  // computations over which gathered parameters stay
  int64_t zero = 0;
  Recompute recompute = Recompute::none;
  int64_t recompute_layers = -1;  // of each stage; -1: all
  Offload offload_optimizer = Offload::none, offload_parameters = Offload::none,
          offload_activations = Offload::none;
  int64_t offload_prefetch = 1;  // computations of a block
  int64_t delayed_update = 0;    // first step; 0: never
  std::filesystem::path offload_dir = {};
  uint64_t bucket_size = uint64_t{8} << 20;  // bytes of f32 gradients
  bool strict = false, shared_memory = true;
  double comm_timeout = 60;   // seconds
  int64_t oversubscribe = 8;  // ranks of this machine for each of its processors, at most
  static constexpr int64_t most_oversubscribed = 64;
};
void declare_options(OptionTable& table, ParallelOptions& options);
// Those that choose a mesh and what is done on it, without what only a running job has.
void declare_layout_options(OptionTable& table, ParallelOptions& options);
// Ranks of the data axis among `world`, which the other degrees must divide; Error{usage}.
int data_degree_of(const ParallelOptions& options, int world);
// The mesh of `world` ranks. Error{usage} with the numbers when the layout has another product.
MeshShape mesh_of(const ParallelOptions& options, int world);
// The schedule that the options ask for, proved to complete. Error{usage}; for a file it names the
// file and, where one is at fault, the line. {environment} when the file cannot be read.
Schedule schedule_of(const ParallelOptions& options, int micros);
// Layers of each stage as given; empty when they are to be balanced.
std::vector<int64_t> stage_layers_of(const ParallelOptions& options);

}  // namespace rankine
