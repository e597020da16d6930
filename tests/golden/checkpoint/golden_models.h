#pragma once
#include <algorithm>
#include <filesystem>
#include <vector>

#include "support/golden.h"

// The reference models in Hugging Face's layout.
namespace rankine::test {

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
