#pragma once
#include <cstdlib>
#include <memory>
#include <string_view>

#include "ops/queued/queued_ops.h"

// The backend that a suite runs on: the processor, or with RANKINE_TEST_DEVICE=queued the simulated
// device, whose results must be the same.
namespace rankine::test {

// Set before ranks start, by a test that compares both.
inline bool& on_queued_device() {
  static bool queued = [] {
    const char* const device = std::getenv("RANKINE_TEST_DEVICE");
    return device != nullptr && std::string_view(device) == "queued";
  }();
  return queued;
}

inline std::unique_ptr<Ops> make_queued_ops(int threads, uint64_t seed) {
  return std::make_unique<QueuedOps>(make_cpu_ops(threads), make_cpu_ops(threads), seed);
}

inline std::unique_ptr<Ops> make_test_ops(int threads) {
  if (!on_queued_device()) return make_cpu_ops(threads);
  const char* const seed = std::getenv("RANKINE_TEST_SEED");
  return make_queued_ops(threads, seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10));
}

}  // namespace rankine::test
