#pragma once
#include <filesystem>
#include <string>

#include "base/options.h"
#include "comm/mesh_shape.h"
#include "ops/ops.h"
#include "runtime/engine.h"
#include "tensor/dtype.h"

namespace rankine {

enum class Precision : uint8_t { automatic, f32, bf16, f16 };

// More than any run needs, and little enough for all that is computed from them. Dropout's streams
// number a step's micro-batches in 16 bits.
inline constexpr int64_t most_sequences = int64_t{1} << 20;  // of a micro-batch
inline constexpr int64_t most_micros = int64_t{1} << 16;     // of a step, all data ranks together
inline constexpr int64_t most_tokens = int64_t{1} << 24;     // of a sequence

// How a training run computes: batch, length, precision, what it writes and when.
struct RunOptions {
  Precision precision = Precision::automatic;
  int64_t seq_length = 256;
  int64_t micro_batch_size = 0, global_batch_size = 0, accumulation = 0;  // 0: derived
  int64_t steps = 200;
  uint64_t seed = 1234;
  int64_t threads = 0;
  std::string device = "cpu";
  std::string instruction_set;
  uint64_t memory_limit = 0, device_memory = 0, host_memory = 0;  // bytes of a rank; 0: see help
  double dropout = 0;
  std::filesystem::path output;
  bool resume = false;
  int64_t save_interval = 0, keep_checkpoints = 2;
  int64_t max_skipped_steps = 10;  // 0: any number
  int64_t eval_interval = 0, eval_batches = 8;
  int64_t log_interval = 10;
  std::filesystem::path metrics;
};
void declare_options(OptionTable& table, RunOptions& options);

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
// The step of `micros` micro-batches; the mesh outlives it. Stages without layers of their own are
// left to be cut evenly.
StepSetup step_setup(const ParallelOptions& options, int micros, const Mesh& mesh);
// The options that choose what computes, and the processor's share: threads and instruction set.
struct MachineOptions {
  std::string* device;
  int64_t* threads;
  std::string* instruction_set;
};
void declare_machine_options(OptionTable& table, const MachineOptions& options);
void declare_precision_option(OptionTable& table, Precision& precision);
void declare_dropout_option(OptionTable& table, double& dropout);

// `automatic` is bf16 where the processor multiplies it natively, otherwise f32.
DType compute_dtype(Precision precision, const Ops& ops);

// Fills in what was left 0 of micro-batch size, global batch size and accumulation, so that global
// = micro * accumulation * data_degree. Error{usage} with all three when that cannot hold.
void derive_batch(RunOptions& options, int64_t data_degree);

}  // namespace rankine
