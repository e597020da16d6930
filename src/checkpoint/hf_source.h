#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"

// The weight files of a Hugging Face model folder, seen as one set of named tensors.
namespace rankine {

// Tensor name -> file name of a model.safetensors.index.json; Error{data} for file names that are
// not plain names.
std::map<std::string, std::string> parse_hf_index(std::string_view text, std::string_view what);

class HfSource {
 public:
  struct Place {
    const SafetensorsFile* file;
    const SafetensorsEntry* entry;
  };

  // Opens model.safetensors, or all files of the index. Error{data} when neither is there, a listed
  // file is absent, or a file and the index disagree.
  explicit HfSource(const std::filesystem::path& folder);

  const std::map<std::string, Place>& tensors() const { return tensors_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void open_shards(const std::filesystem::path& folder, const std::filesystem::path& index);
  std::map<std::string, SafetensorsFile> files_;
  std::map<std::string, Place> tensors_;
  std::vector<std::string> warnings_;
};

}  // namespace rankine
