#pragma once
#include <filesystem>
#include <fstream>
#include <optional>

#include "runtime/trainer.h"

namespace rankine {

struct StepMetrics {
  StepReport report;
  double seconds = 0, tokens_per_second = 0, mfu = 0;
  uint64_t planned_bytes = 0, arena_peak_bytes = 0, resident_bytes = 0;  // of the first rank
  int ranks = 1;
  uint64_t data_bytes_sent = 0;  // by the first rank along the data axis, in this step
  std::optional<double> validation_loss;
};

// One JSON object per step and line: step, loss, grad_norm, lr, tokens, seconds, tokens_per_second,
// mfu, loss_scale, skipped, memory {planned, arena_peak, rss} of the first rank, ranks, bytes_sent
// {data} by the first rank, and validation_loss where there was one. Fields are added over time,
// none changes its meaning.
std::string metrics_line(const StepMetrics& metrics);

class MetricsFile {
 public:
  // An empty path writes nothing. Keeps the lines of steps up to `after_step` of an existing file
  // and drops the later ones.
  MetricsFile(const std::filesystem::path& path, int64_t after_step);
  void write(const StepMetrics& metrics);  // Error{environment} or {resource} when it fails

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace rankine
