#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What owns memory, listed before any of it is allocated. The planner prints peak_bytes() and an
// Arena reserves exactly that, so that predicted and real memory cannot drift apart.
namespace rankine {

enum class Tier : uint8_t { device, host, disk };

enum class Life : uint8_t {
  permanent,  // from start to end
  scratch     // within one phase; the phases overlay each other
};

struct Allocation {
  std::string name;      // unique within a tier, e.g. "layers.3.qkv"
  std::string category;  // for people: "parameters", "optimizer states", "activations", ...
  uint64_t bytes = 0;
  Life life = Life::permanent;
  std::string phase = {};  // scratch only: entries of one phase live together
  Tier tier = Tier::device;
};

class MemoryPlan {
 public:
  static constexpr uint64_t alignment = 64;

  // Rounds bytes up to the alignment. A name given twice in one tier is an internal error.
  void add(Allocation allocation);
  std::span<const Allocation> entries() const { return entries_; }
  uint64_t permanent_bytes(Tier tier) const;
  uint64_t scratch_bytes(Tier tier) const;  // of the largest phase
  uint64_t peak_bytes(Tier tier) const;

 private:
  std::vector<Allocation> entries_;
};

struct PlanLine {
  std::string category;
  uint64_t bytes;
};
// Bytes at the peak by category, largest first; scratch counts the largest phase only.
std::vector<PlanLine> summary(const MemoryPlan& plan, Tier tier);
// A table of summary() with its total, for people.
std::string to_table(const MemoryPlan& plan, Tier tier);

}  // namespace rankine
