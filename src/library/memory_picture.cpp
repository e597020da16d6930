#include "library/memory_picture.h"

#include <algorithm>

#include "base/text.h"
#include "plan/memory_curve.h"

namespace rankine {
namespace {

constexpr size_t columns = 72, rows = 12;
constexpr std::string_view letters = "pgarox";  // one per Moving

// Each column's actions as one: what is most in use at any of them.
std::vector<MemoryCurve::Bytes> fitted(const MemoryCurve& curve) {
  const size_t actions = curve.moving.size(), count = std::min(columns, actions);
  std::vector<MemoryCurve::Bytes> out;
  for (size_t column = 0; column < count; ++column) {
    const auto first = curve.moving.begin() + static_cast<std::ptrdiff_t>(column * actions / count);
    const auto end =
        curve.moving.begin() + static_cast<std::ptrdiff_t>((column + 1) * actions / count);
    out.push_back(*std::max_element(first, end, [](const auto& a, const auto& b) {
      return MemoryCurve::sum(a) < MemoryCurve::sum(b);
    }));
  }
  return out;
}

// The letter at a height of a column, ' ' above all.
char letter_at(const MemoryCurve::Bytes& bytes, double height) {
  double top = 0;
  for (size_t kind = 0; kind < bytes.size(); ++kind)
    if (height < (top += static_cast<double>(bytes[kind]))) return letters[kind];
  return ' ';
}

std::string area(const MemoryCurve& curve, int64_t most) {
  const std::vector<MemoryCurve::Bytes> fit = fitted(curve);
  std::string out;
  for (size_t row = rows; row-- > 0;) {
    const double share = (static_cast<double>(row) + 0.5) / rows;
    const auto label = static_cast<uint64_t>(curve.staying_bytes() +
                                             most * static_cast<int64_t>(row + 1) / int64_t{rows});
    std::string line;
    for (const MemoryCurve::Bytes& bytes : fit)
      line += letter_at(bytes, share * static_cast<double>(most));
    out += fmt::format("{:>10} |{}\n", format_bytes(label), line);
  }
  return out + fmt::format("{:>10} +{}\n",
                           format_bytes(static_cast<uint64_t>(curve.staying_bytes())),
                           std::string(fit.size(), '-'));
}

// "1F0.3 (step 12 of 90)".
std::string action_text(const StepPlan& plan, size_t action) {
  return fmt::format("{} (action {} of {})", to_string(plan.program[action]), action + 1,
                     plan.program.size());
}

// The kinds at the peak, largest first, each with how many buffers of which micro-batches.
std::string peak_parts(const StepPlan& plan, const MemoryCurve& curve) {
  std::vector<size_t> kinds;
  const MemoryCurve::Bytes& bytes = curve.moving[curve.peak];
  for (size_t kind = 0; kind < bytes.size(); ++kind)
    if (bytes[kind] > 0) kinds.push_back(kind);
  std::ranges::stable_sort(kinds, [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  std::string out;
  for (const size_t kind : kinds)
    out += fmt::format("  {:<38} {:>10}\n", name_of(static_cast<Moving>(kind)),
                       format_bytes(static_cast<uint64_t>(bytes[kind])));
  const std::vector<Stay> stays = stays_at(plan, curve.peak);
  if (!stays.empty())
    out += fmt::format(
        "  the largest of {} buffers is {} of block {}{}\n", stays.size(),
        format_bytes(static_cast<uint64_t>(stays[0].bytes)), stays[0].block,
        stays[0].micro == Action::none ? "" : fmt::format(" for micro-batch {}", stays[0].micro));
  return out;
}

}  // namespace

std::string memory_picture(const Engine& engine) {
  const StepPlan& plan = engine.step_plan();
  const MemoryCurve curve = memory_curve(plan, engine.plan());
  const int64_t most = MemoryCurve::sum(curve.moving[curve.peak]);
  std::string out;
  for (const PlanLine& line : curve.staying)
    out += fmt::format("  {:<38} {:>10}  stays\n", line.category, format_bytes(line.bytes));
  out += '\n' + area(curve, most);
  out += fmt::format("{:>10}  {} ... {}\n", "", to_string(plan.program.front()),
                     to_string(plan.program.back()));
  for (size_t kind = 0; kind < moving_kinds; ++kind)
    if (std::ranges::any_of(curve.moving, [&](const auto& bytes) { return bytes[kind] > 0; }))
      out += fmt::format("  {} {}\n", letters[kind], name_of(static_cast<Moving>(kind)));
  out += fmt::format("peak {} of {} reserved, at {}:\n{}",
                     format_bytes(static_cast<uint64_t>(curve.staying_bytes() + most)),
                     format_bytes(static_cast<uint64_t>(curve.staying_bytes() + curve.reserved)),
                     action_text(plan, curve.peak), peak_parts(plan, curve));
  return out;
}

nlohmann::ordered_json memory_over_step(const Engine& engine) {
  const StepPlan& plan = engine.step_plan();
  const MemoryCurve curve = memory_curve(plan, engine.plan());
  nlohmann::ordered_json json;
  for (const PlanLine& line : curve.staying) json["staying"][line.category] = line.bytes;
  for (size_t kind = 0; kind < moving_kinds; ++kind)
    json["moving"].push_back(name_of(static_cast<Moving>(kind)));
  json["reserved_bytes"] = curve.reserved;
  json["peak_action"] = curve.peak;
  for (size_t action = 0; action < curve.moving.size(); ++action)
    json["actions"].push_back(
        {{"action", to_string(plan.program[action])}, {"bytes", curve.moving[action]}});
  return json;
}

}  // namespace rankine
