#pragma once
#include <cstdlib>
#include <filesystem>

// The folder of numbers from independent implementations.
namespace rankine::test {

// $RANKINE_GOLDEN, or ../shared/golden beside the sources; may not exist.
inline std::filesystem::path golden_folder() {
  const char* set = std::getenv("RANKINE_GOLDEN");
  return set != nullptr ? std::filesystem::path(set)
                        : std::filesystem::path(RANKINE_SOURCE_DIR) / "../shared/golden";
}

}  // namespace rankine::test
