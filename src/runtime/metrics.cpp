#include "runtime/metrics.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace rankine {
namespace {

// JSON has no infinities: a non-finite number becomes null.
nlohmann::ordered_json number(double x) {
  return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json(nullptr);
}

// The lines of `text` that are whole and of a step up to `last`.
std::string lines_up_to(const std::string& text, int64_t last) {
  std::string kept;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string line = text.substr(begin, end - begin);
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
        json["step"].get<int64_t>() <= last)
      kept += line + "\n";
    begin = end + 1;
  }
  return kept;
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

MetricsFile::MetricsFile(const std::filesystem::path& path, int64_t after_step) : path_(path) {
  if (path.empty()) return;
  std::error_code code;
  if (std::filesystem::is_regular_file(path, code) && after_step > 0)
    write_text_atomically(path, lines_up_to(read_text(path), after_step));
  errno = 0;
  file_.open(path, after_step > 0 ? std::ios::app : std::ios::trunc);
  require(file_.is_open(), ErrorKind::environment, "cannot open '{}': {}", path.string(),
          std::strerror(errno));
}

void MetricsFile::write(const StepMetrics& metrics) {
  if (path_.empty()) return;
  errno = 0;
  file_ << metrics_line(metrics) << '\n' << std::flush;
  require(file_.good(), errno == ENOSPC ? ErrorKind::resource : ErrorKind::environment,
          "cannot write metrics to '{}': {}", path_.string(), std::strerror(errno));
}

}  // namespace rankine
