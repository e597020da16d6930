#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "io/tier_file.h"
#include "state/param_layout.h"
#include "tensor/dtype.h"
#include "tensor/memory_plan.h"

namespace rankine {

// In which memory something lies: that of the device, of the host, or a file.
enum class Offload : uint8_t { none, host, disk };

struct OffloadSetup {
  // Master weights, Adam's states and the sums of gradients, which are updated there (ZeRO-Offload,
  // Ren et al. 2021, arXiv 2101.06840); parameters in the compute dtype; saved activations.
  Offload optimizer = Offload::none, parameters = Offload::none, activations = Offload::none;
  std::filesystem::path folder = {};  // of the disk tier
  int rank = 0;                       // of the world: names the files
  int prefetch = 1;                   // computations of a block by which reads come early
  int64_t delayed_update = 0;  // from this step on updates run beside the next step; 0: never

  bool on_disk() const {
    return optimizer == Offload::disk || parameters == Offload::disk ||
           activations == Offload::disk;
  }
};

// What separate copies have moved. Gradients that are added up in the host tier are not among it:
// the sum itself writes them there.
struct TierTraffic {
  TierUse host, disk;
  TierTraffic operator+(const TierTraffic& o) const { return {host + o.host, disk + o.disk}; }
  TierTraffic operator-(const TierTraffic& o) const { return {host - o.host, disk - o.disk}; }
};

inline Tier tier_of(Offload offload) {
  if (offload == Offload::none) return Tier::device;
  return offload == Offload::host ? Tier::host : Tier::disk;
}

// Shards of model states are multiples of so many elements: on disk whole pages of each dtype that
// lies there, so that they are read and written directly and apart from each other.
inline int64_t shard_unit(const OffloadSetup& offload, DType compute) {
  constexpr auto page = static_cast<int64_t>(TierFile::alignment);
  int64_t unit = ParamLayout::alignment;
  if (offload.optimizer == Offload::disk) unit = page / 4;
  if (offload.parameters == Offload::disk) unit = std::max(unit, page / dtype_bytes(compute));
  return unit;
}

}  // namespace rankine
