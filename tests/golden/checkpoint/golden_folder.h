#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

// Where the reference models lie: $RANKINE_GOLDEN, else beside the source.
namespace rankine::test {

inline std::filesystem::path golden_folder() {
  const char* given = std::getenv("RANKINE_GOLDEN");
  return given != nullptr ? std::filesystem::path(given)
                          : std::filesystem::path(RANKINE_SOURCE_DIR) / ".." / "shared" / "golden";
}

// Sub-folders that hold a model, sorted; empty when the golden files are absent.
inline std::vector<std::filesystem::path> golden_models() {
  std::vector<std::filesystem::path> out;
  for (const char* group : {"models", "edge", "trained"}) {
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator(golden_folder() / group, code))
      if (std::filesystem::exists(entry.path() / "config.json")) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace rankine::test
