#include "machine/process.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

namespace rankine {

ResidentMemory resident_memory() {
  ResidentMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const auto value = [&] { return std::stoull(line.substr(line.find(':') + 1)) * 1024; };
    if (line.starts_with("VmRSS:")) memory.now = value();
    if (line.starts_with("VmHWM:")) memory.peak = value();
  }
  return memory;
}

uint64_t physical_memory() {
  uint64_t bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  uint64_t allowed = 0;
  if (limit >> allowed) bytes = std::min(bytes, allowed);
  return bytes;
}

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace rankine
