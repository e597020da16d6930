#include "tensor/memory_plan.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace rankine {
namespace {

// The phase whose scratch entries sum up largest ("" when there are none).
std::string largest_phase(std::span<const Allocation> entries, Tier tier) {
  std::map<std::string, uint64_t> bytes;
  for (const Allocation& a : entries)
    if (a.tier == tier && a.life == Life::scratch) bytes[a.phase] += a.bytes;
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "" : most->first;
}

}  // namespace

void MemoryPlan::add(Allocation allocation) {
  for (const Allocation& other : entries_)
    expect(other.name != allocation.name || other.tier != allocation.tier,
           "an allocation's name is unique");
  allocation.bytes = (allocation.bytes + alignment - 1) / alignment * alignment;
  entries_.push_back(std::move(allocation));
}

uint64_t MemoryPlan::permanent_bytes(Tier tier) const {
  uint64_t sum = 0;
  for (const Allocation& a : entries_)
    if (a.tier == tier && a.life == Life::permanent) sum += a.bytes;
  return sum;
}

uint64_t MemoryPlan::scratch_bytes(Tier tier) const {
  const std::string phase = largest_phase(entries_, tier);
  uint64_t sum = 0;
  for (const Allocation& a : entries_)
    if (a.tier == tier && a.life == Life::scratch && a.phase == phase) sum += a.bytes;
  return sum;
}

uint64_t MemoryPlan::peak_bytes(Tier tier) const {
  return permanent_bytes(tier) + scratch_bytes(tier);
}

std::vector<PlanLine> summary(const MemoryPlan& plan, Tier tier) {
  const std::string phase = largest_phase(plan.entries(), tier);
  std::map<std::string, uint64_t> bytes;
  for (const Allocation& a : plan.entries()) {
    if (a.tier != tier || (a.life == Life::scratch && a.phase != phase)) continue;
    bytes[a.category] += a.bytes;
  }
  std::vector<PlanLine> lines;
  for (const auto& [category, sum] : bytes) lines.push_back({category, sum});
  std::stable_sort(lines.begin(), lines.end(),
                   [](const PlanLine& a, const PlanLine& b) { return a.bytes > b.bytes; });
  return lines;
}

std::string to_table(const MemoryPlan& plan, Tier tier) {
  std::string out;
  for (const PlanLine& line : summary(plan, tier))
    out += fmt::format("  {:<24} {:>12}\n", line.category, format_bytes(line.bytes));
  out += fmt::format("  {:<24} {:>12}\n", "total", format_bytes(plan.peak_bytes(tier)));
  return out;
}

}  // namespace rankine
