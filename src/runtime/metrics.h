#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "base/file.h"
#include "runtime/trainer.h"

namespace rankine {

// What one rank has had to do with the others along an axis.
struct AxisUse {
  uint64_t bytes_sent = 0;
  double exposed_seconds = 0;  // in which it waited and did not compute
  AxisUse operator+(const AxisUse& o) const {
    return {bytes_sent + o.bytes_sent, exposed_seconds + o.exposed_seconds};
  }
  AxisUse operator-(const AxisUse& o) const {
    return {bytes_sent - o.bytes_sent, exposed_seconds - o.exposed_seconds};
  }
};
struct AxisTraffic {
  AxisUse pipeline, data, tensor;
  AxisTraffic operator-(const AxisTraffic& o) const {
    return {pipeline - o.pipeline, data - o.data, tensor - o.tensor};
  }
};

AxisTraffic axis_traffic(const Mesh& mesh);  // of this rank so far

struct StepMetrics {
  StepReport report;
  double seconds = 0, tokens_per_second = 0, mfu = 0;
  uint64_t planned_bytes = 0, arena_peak_bytes = 0, resident_bytes = 0;  // of the first rank
  int ranks = 1;
  AxisTraffic traffic;  // of the first rank, in this step
  TierTraffic tiers;    // likewise
  std::optional<double> validation_loss;
};

// One JSON object per step and line: step, loss, grad_norm, lr, tokens, seconds, tokens_per_second,
// mfu, loss_scale, skipped, memory {planned, arena_peak, rss} of the first rank, ranks, bytes_sent
// and exposed_seconds {pipeline, data, tensor} of the first rank, tiers {host, disk} with its
// bytes_read, bytes_written and exposed_seconds, and validation_loss where there was one. Of a step
// without a token to learn loss and grad_norm are null. Fields
// are added over time, none changes its meaning.
nlohmann::ordered_json to_json(const TierTraffic& tiers);
std::string metrics_line(const StepMetrics& metrics);

// Whether a text is of this kind, or empty.
bool looks_like_metrics(const std::string& text);

class MetricsFile {
 public:
  // An empty path writes nothing. Keeps the lines of steps up to `after_step` of an existing file
  // and drops the others. Error{usage} when that holds something else than metrics.
  MetricsFile(const std::filesystem::path& path, int64_t after_step);
  // What is missing of the steps up to `after_step`, or "".
  const std::string& warning() const { return warning_; }
  void write(const StepMetrics& metrics);  // Error{environment} or {resource} when it fails

 private:
  std::optional<File> file_;
  std::string warning_;
};

}  // namespace rankine
