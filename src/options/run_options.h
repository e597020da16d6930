#pragma once
#include <filesystem>
#include <string>

#include "base/options.h"
#include "ops/ops.h"
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
