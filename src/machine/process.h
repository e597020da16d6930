#pragma once
#include <cstdint>

// What the operating system says of this process and machine.
namespace rankine {

struct ResidentMemory {
  uint64_t now = 0, peak = 0;  // bytes
};
ResidentMemory resident_memory();  // zeros where /proc is absent
uint64_t physical_memory();        // bytes of the machine, or of this cgroup when less
inline uint64_t memory_share(int local_ranks) {  // of one of so many ranks of this machine
  return physical_memory() / static_cast<uint64_t>(local_ranks);
}
double monotonic_seconds();

}  // namespace rankine
