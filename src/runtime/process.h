#pragma once
#include <cstdint>

// What the operating system says of this process and machine.
namespace rankine {

struct ResidentMemory {
  uint64_t now = 0, peak = 0;  // bytes
};
ResidentMemory resident_memory();  // zeros where /proc is absent
uint64_t physical_memory();        // bytes of the machine, or of this cgroup when less
double monotonic_seconds();

}  // namespace rankine
