#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/safetensors.h"
#include "support/golden.h"
#include "support/training.h"

// The case folders found under the golden folder, and one of them opened.
namespace rankine::test {

using Json = nlohmann::json;

// Names of the subfolders of golden/<kind> that hold a golden.json; {""} when there are none.
inline std::vector<std::string> case_names(const std::string& kind) {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder() / kind, code))
    if (std::filesystem::exists(entry.path() / "golden.json"))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names.empty() ? std::vector<std::string>{""} : names;
}

inline std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.empty() ? "absent" : info.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

// One test parameterised by a case's name; open_case() skips where there is nothing to compare.
class GoldenCase : public ::testing::TestWithParam<std::string> {
 protected:
  // False (and the test skipped, with the reason) when the case cannot be run.
  bool open_case(const std::string& kind) {
    if (GetParam().empty()) {
      skip("no golden cases under " + (golden_folder() / kind).string());
      return false;
    }
    folder = golden_folder() / kind / GetParam();
    golden = Json::parse(read_text(folder / "golden.json"));
    try {
      config = read_hf_config(folder / "config.json");
    } catch (const Error& e) {
      const bool mixture = std::string(e.what()).find("mixture of experts") != std::string::npos;
      EXPECT_TRUE(mixture) << e.what();
      skip(e.what());
      return false;
    }
    return true;
  }
  void skip(const std::string& reason) {
    [&] { GTEST_SKIP() << reason; }();
  }

  void load(Engine& engine) const {
    import_hf(folder, config, engine.store().weights(), engine.executor().ops());
    engine.store().refresh_compute();
  }

  std::filesystem::path folder;
  Json golden;
  ModelConfig config;
};

template <class T>
std::vector<T> read_raw(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry* entry = file.find(name);
  if (entry == nullptr) {
    ADD_FAILURE() << name << " is missing in " << file.path();
    return {};
  }
  std::vector<T> out(static_cast<size_t>(entry->elements()));
  file.read(*entry, 0, entry->elements(), out.data());
  return out;
}

inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

inline double largest(std::span<const float> a) {
  double most = 0;
  for (const float x : a) most = std::max(most, std::abs(static_cast<double>(x)));
  return most;
}

}  // namespace rankine::test
