#pragma once
#include <filesystem>
#include <string>

#include "base/options.h"
#include "ops/ops.h"
#include "tensor/dtype.h"

namespace rankine {

enum class Precision : uint8_t { automatic, f32, bf16, f16 };

// How a training run computes: batch, length, precision, what it writes and when.
struct RunOptions {
  Precision precision = Precision::automatic;
  int64_t seq_length = 256;
  int64_t micro_batch_size = 0, global_batch_size = 0, accumulation = 0;  // 0: derived
  int64_t steps = 200;
  uint64_t seed = 1234;
  int64_t threads = 0;
  std::string instruction_set;
  uint64_t memory_limit = 0;
  double dropout = 0;
  std::filesystem::path output;
  bool resume = false;
  int64_t save_interval = 0, keep_checkpoints = 2;
  int64_t eval_interval = 0, eval_batches = 8;
  int64_t log_interval = 10;
  std::filesystem::path metrics;
};
void declare_options(OptionTable& table, RunOptions& options);
// The options that choose the processor's share: threads and instruction set.
void declare_machine_options(OptionTable& table, int64_t& threads, std::string& instruction_set);
void declare_precision_option(OptionTable& table, Precision& precision);

// `automatic` is bf16 where the processor multiplies it natively, otherwise f32.
DType compute_dtype(Precision precision, const Ops& ops);

// Fills in what was left 0 of micro-batch size, global batch size and accumulation, so that global
// = micro * accumulation * data_degree. Error{usage} with all three when that cannot hold.
void derive_batch(RunOptions& options, int64_t data_degree);

}  // namespace rankine
