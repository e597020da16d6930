#include "runtime/metrics.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"

namespace rankine {
namespace {

// JSON has no infinities: a non-finite number becomes null.
nlohmann::ordered_json number(double x) {
  return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json(nullptr);
}

std::optional<int64_t> step_of(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json.contains("loss")) return std::nullopt;
  return json["step"].is_number_integer() ? std::optional(json["step"].get<int64_t>())
                                          : std::nullopt;
}

struct KeptLines {
  std::string text;
  std::set<int64_t> steps;
  int64_t broken = 0;
};

// The lines of `text` that are whole and of a step up to `last`, one of each.
KeptLines lines_up_to(const std::string& text, int64_t last) {
  KeptLines kept;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string line = text.substr(begin, end - begin);
    const std::optional<int64_t> step = step_of(line);
    if (!step) ++kept.broken;
    if (step && *step <= last && kept.steps.insert(*step).second) kept.text += line + "\n";
    begin = end + 1;
  }
  return kept;
}

std::string gap_warning(const std::filesystem::path& path, const KeptLines& kept, int64_t last) {
  int64_t missing = 0, first = 0;
  for (int64_t step = last; step > 0; --step)
    if (!kept.steps.contains(step)) {
      ++missing;
      first = step;
    }
  if (missing == 0 && kept.broken == 0) return "";
  std::string out = fmt::format("'{}' ", path.string());
  if (kept.broken > 0)
    out += fmt::format("has {} lines that are no metrics, left out", kept.broken);
  if (missing > 0)
    out += fmt::format("{}lacks {} of the steps up to {}, the first is {}; they are not made again",
                       kept.broken > 0 ? ", and " : "", missing, last, first);
  return out;
}

}  // namespace

AxisTraffic axis_traffic(const Mesh& mesh) {
  const auto of = [](const Communicator& group) {
    return AxisUse{group.bytes_sent(), group.waited_seconds()};
  };
  return {.pipeline = of(*mesh.pipeline) + of(*mesh.pipeline_gradients),
          .data = of(*mesh.data),
          .tensor = of(*mesh.tensor) + of(*mesh.replicas)};
}

nlohmann::ordered_json to_json(const TierTraffic& tiers) {
  const auto of = [](const TierUse& use) {
    return nlohmann::ordered_json{{"bytes_read", use.bytes_read},
                                  {"bytes_written", use.bytes_written},
                                  {"exposed_seconds", use.exposed_seconds}};
  };
  return {{"host", of(tiers.host)}, {"disk", of(tiers.disk)}};
}

std::string metrics_line(const StepMetrics& m) {
  nlohmann::ordered_json json;
  json["step"] = m.report.step;
  json["loss"] = number(m.report.loss);
  json["grad_norm"] = number(m.report.grad_norm);
  json["lr"] = m.report.lr;
  json["tokens"] = m.report.tokens;
  json["seconds"] = m.seconds;
  json["tokens_per_second"] = m.tokens_per_second;
  json["mfu"] = m.mfu;
  json["loss_scale"] = m.report.loss_scale;
  json["skipped"] = m.report.skipped;
  json["memory"] = {
      {"planned", m.planned_bytes}, {"arena_peak", m.arena_peak_bytes}, {"rss", m.resident_bytes}};
  json["ranks"] = m.ranks;
  const AxisTraffic& t = m.traffic;
  json["bytes_sent"] = {{"pipeline", t.pipeline.bytes_sent},
                        {"data", t.data.bytes_sent},
                        {"tensor", t.tensor.bytes_sent}};
  json["exposed_seconds"] = {{"pipeline", t.pipeline.exposed_seconds},
                             {"data", t.data.exposed_seconds},
                             {"tensor", t.tensor.exposed_seconds}};
  json["tiers"] = to_json(m.tiers);
  if (m.validation_loss) json["validation_loss"] = number(*m.validation_loss);
  return json.dump();
}

bool looks_like_metrics(const std::string& text) {
  const size_t end = text.find('\n');
  return text.empty() || (end == std::string::npos ? text.starts_with("{\"step\":")
                                                   : step_of(text.substr(0, end)).has_value());
}

MetricsFile::MetricsFile(const std::filesystem::path& named, int64_t after_step) {
  if (named.empty()) return;
  // A link stays one; a device is written to as it is.
  const std::filesystem::path path = std::filesystem::weakly_canonical(named);
  const bool plain = !is_there(path) || std::filesystem::is_regular_file(path);
  const std::string before = plain && is_there(path) ? read_text(path) : "";
  require(looks_like_metrics(before), ErrorKind::usage,
          "'{}' is there and holds no metrics; choose another --metrics, or move it away",
          path.string());
  const KeptLines kept = lines_up_to(before, after_step);
  if (plain && after_step > 0) warning_ = gap_warning(path, kept, after_step);
  if (kept.text != before) write_text_atomically(path, kept.text);
  file_ = File::open_append(path);
}

void MetricsFile::write(const StepMetrics& metrics) {
  if (file_) file_->append(metrics_line(metrics) + "\n");
}

}  // namespace rankine
