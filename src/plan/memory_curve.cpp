#include "plan/memory_curve.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace rankine {
namespace {

Moving moving_of(StayKind kind) {
  switch (kind) {
    case StayKind::parameters:
      return Moving::parameters;
    case StayKind::gradient:
      return Moving::gradients;
    case StayKind::input:
    case StayKind::saved:
    case StayKind::input_again:
    case StayKind::saved_again:
    case StayKind::stored:  // in its tier, not on the device
      return Moving::saved;
    case StayKind::passed_over:
    case StayKind::recomputed:
      return Moving::recomputed;
    case StayKind::pending:
      return Moving::pending;
    case StayKind::output:
    case StayKind::input_gradient:
    case StayKind::output_gradient:
      return Moving::passing;
  }
  fail(ErrorKind::internal, "a stay of no kind");
}

// Visits every stay on the device.
template <class Visit>
void each_stay(const StepPlan& plan, const Visit& visit) {
  for (const std::vector<Stay>* pool :
       {&plan.gathers, &plan.gradients, &plan.activations.saved, &plan.activations.passing})
    for (const Stay& stay : *pool) visit(stay);
}

// What the plan lists without the pools in which things come and go.
std::vector<PlanLine> staying_lines(const StepPlan& plan, const MemoryPlan& memory) {
  std::vector<PlanLine> lines = summary(memory, Tier::device);
  const auto take = [&](std::string_view category, int64_t bytes) {
    for (PlanLine& line : lines) {
      if (line.category != category) continue;
      expect(line.bytes >= static_cast<uint64_t>(bytes), "a pool is in its category");
      line.bytes -= static_cast<uint64_t>(bytes);
    }
  };
  take("gathered parameters", plan.gathered_bytes);
  take("gradients under way", plan.gradient_bytes);
  take("activations", plan.saved_bytes);
  take("gradients of activations", plan.passing_bytes);
  std::erase_if(lines, [](const PlanLine& line) { return line.bytes == 0; });
  std::ranges::stable_sort(lines, std::greater{}, &PlanLine::bytes);
  return lines;
}

}  // namespace

std::string_view name_of(Moving kind) {
  constexpr std::array<std::string_view, moving_kinds> names = {
      "gathered parameters",
      "gradients",
      "saved activations",
      "recomputed activations",
      "outputs and gradients of activations",
      "gradients kept for weights"};
  return names.at(static_cast<size_t>(kind));
}

int64_t MemoryCurve::sum(const Bytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

int64_t MemoryCurve::staying_bytes() const {
  int64_t bytes = 0;
  for (const PlanLine& line : staying) bytes += static_cast<int64_t>(line.bytes);
  return bytes;
}

MemoryCurve memory_curve(const StepPlan& plan, const MemoryPlan& memory) {
  MemoryCurve out;
  out.staying = staying_lines(plan, memory);
  out.moving.resize(plan.program.size());
  out.reserved = plan.gathered_bytes + plan.gradient_bytes + plan.saved_bytes + plan.passing_bytes;
  each_stay(plan, [&](const Stay& stay) {
    for (int action = stay.first; action <= stay.last; ++action)
      out.moving.at(static_cast<size_t>(action))[static_cast<size_t>(moving_of(stay.kind))] +=
          stay.bytes;
  });
  for (size_t action = 0; action < out.moving.size(); ++action)
    if (MemoryCurve::sum(out.moving[action]) > MemoryCurve::sum(out.moving[out.peak]))
      out.peak = action;
  return out;
}

std::vector<Stay> stays_at(const StepPlan& plan, size_t action) {
  std::vector<Stay> out;
  each_stay(plan, [&](const Stay& stay) {
    const int at = static_cast<int>(action);
    if (stay.first <= at && at <= stay.last) out.push_back(stay);
  });
  std::ranges::stable_sort(out, std::greater{}, &Stay::bytes);
  return out;
}

}  // namespace rankine
