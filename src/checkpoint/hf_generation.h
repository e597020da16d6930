#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/config.h"

// Token ids that a model's files name and its matrices do not have: a token was added and the
// matrices did not grow. Rule: they can be neither read nor written, so that they are left out, and
// told, wherever a model is opened.
namespace rankine {

// Sets such ids of a config to none. Returns a note on each; `what` names the file.
std::vector<std::string> leave_out_foreign_ids(ModelConfig& config, const std::string& what);

// The ids of a generation_config.json.
struct HfGeneration {
  std::vector<int64_t> eos;        // below the vocabulary
  std::vector<std::string> notes;  // on those that are not
};
// Of a model's folder; nothing when the file is absent. Error{data} when it is damaged.
HfGeneration read_hf_generation(const std::filesystem::path& folder, int64_t vocabulary);

}  // namespace rankine
