#pragma once
#include <cstdint>
#include <filesystem>

#include "tensor/memory_plan.h"

namespace rankine {

// ZeRO-Offload (Ren et al. 2021, arXiv 2101.06840): in which memory master weights, Adam's states
// and the sums of gradients lie, and are updated.
enum class Offload : uint8_t { none, host, disk };

struct OffloadSetup {
  Offload optimizer = Offload::none;
  std::filesystem::path folder = {};  // of the disk tier
  int rank = 0;                       // of the world: names the file
};

inline Tier tier_of(Offload offload) {
  if (offload == Offload::none) return Tier::device;
  return offload == Offload::host ? Tier::host : Tier::disk;
}

}  // namespace rankine
