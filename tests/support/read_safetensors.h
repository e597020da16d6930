#pragma once
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "support/hf_folder.h"

namespace rankine::test {

// A folder of one safetensors file in F32, read without the product's own readers.
inline HfModel read_hf_folder(const std::filesystem::path& folder) {
  HfModel model;
  model.config = Json::parse(read_text(folder / "config.json"));
  const std::string file = read_text(folder / "model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  const Json header = Json::parse(file.substr(sizeof(length), length));
  const char* const data = file.data() + sizeof(length) + length;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    if (entry.at("dtype") != "F32") throw std::runtime_error(name + " is not F32");
    HfWeight& weight = model.weights[name];
    weight.shape = entry.at("shape").get<std::vector<int64_t>>();
    const auto begin = entry.at("data_offsets").at(0).get<size_t>();
    const auto end = entry.at("data_offsets").at(1).get<size_t>();
    weight.values.resize((end - begin) / sizeof(float));
    std::memcpy(weight.values.data(), data + begin, end - begin);
  }
  return model;
}

}  // namespace rankine::test
