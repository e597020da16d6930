#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "data/options.h"
#include "library/ranks.h"
#include "model/config.h"
#include "ops/timed_ops.h"
#include "options/parallel_options.h"
#include "options/run_options.h"
#include "runtime/metrics.h"

namespace rankine {

struct BenchOptions {
  std::string model = "gpt2", precision = "f32,bf16", device = "cpu", instruction_set;
  int64_t seq_length = 1024, micro_batch_size = 4, accumulation = 1, steps = 5, threads = 0;
  uint64_t memory_limit = 0;
  int64_t generate = 0, batch_size = 1;  // tokens; when given nothing else is measured
  bool profile = false;
  std::vector<std::string> collectives;  // sizes; when given nothing else is measured
  std::filesystem::path disk;            // a folder; when given nothing else is measured
  uint64_t disk_bytes = uint64_t{2} << 30;
  TextOptions text;                 // files; when given nothing else is measured
  std::string tokenizer = "bytes";  // to encode them with
  ParallelOptions parallel;
  std::filesystem::path json;
};

enum class BenchMode : uint8_t { training, generate, collectives, disk, text };
// By the options given. Error{usage} for one that has no effect on what is measured.
BenchMode bench_mode(const OptionTable& table);

// Medians of training steps; of the first rank where nothing else is said.
struct StepFigures {
  double seconds, tokens_per_second, mfu, mfu_undisturbed, peak_flops, adamw_bytes, adamw_share;
  uint64_t peak_bytes, planned_bytes, resident_bytes, most_resident_bytes;
  AxisTraffic traffic;  // of the last step
  TierTraffic tiers;    // likewise
  std::vector<TimedOps::Line> profile;
};
// Error{resource} when the plans of all ranks do not fit this machine.
void check_memory(const BenchOptions& o, const ModelConfig& config, DType dtype,
                  const MeshShape& mesh);
// Every rank calls it; `peak_flops` and shares of it are of all ranks together.
StepFigures measure_training(const BenchOptions& o, const ModelConfig& config, DType dtype,
                             const Rank& rank);

// Times of collectives between the ranks against copying as many bytes, all ranks at once.
struct CollectiveFigures {
  uint64_t bytes = 0;  // of the whole tensor
  // Seconds, medians.
  double copy = 0, all_reduce = 0, reduce_scatter = 0, all_gather = 0, all_reduce_bf16 = 0;
  // Medians of each round's copy over collective, and of f32 over bf16.
  double all_reduce_share = 0, reduce_scatter_share = 0, all_gather_share = 0, bf16_speedup = 0;
};
CollectiveFigures measure_collectives(uint64_t bytes, const Rank& rank);

// Rates of a TierFile in a folder from end to end against fio's there, in turn with them.
struct DiskFigures {
  struct Way {
    double bytes_per_second = 0, fio_bytes_per_second = 0;  // medians
    double share = 0;                                       // median of each round's own over fio's
  };
  uint64_t bytes = 0;
  bool direct = false;
  std::string engine, fio_engine;  // the latter is empty where fio is missing
  Way write, read;
};
DiskFigures measure_disk(const std::filesystem::path& folder, uint64_t bytes);

// Writing text: a median of tokens, each against reading memory right before.
struct GenerateFigures {
  double seconds = 0, tokens_per_second = 0;  // of a token of every text; of all texts together
  double weight_bytes = 0, cache_bytes = 0;   // read for it, the latter on average
  double read_bytes_per_second = 0, share = 0;
  uint64_t planned_bytes = 0;
  std::vector<TimedOps::Line> profile;  // of the last token
};
GenerateFigures measure_generating(const BenchOptions& o, const ModelConfig& config, DType dtype);

// Reading, encoding and learning from text, each by one thread; medians.
struct TextFigures {
  uint64_t text_bytes = 0, lines_bytes = 0, tokens = 0;
  double lines_seconds = 0, encode_seconds = 0, train_seconds = 0;
  int64_t trained_vocabulary = 4096;
};
TextFigures measure_text(const BenchOptions& o);

double median(std::vector<double> values);

}  // namespace rankine
