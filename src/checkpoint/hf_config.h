#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "model/config.h"

// Model configurations in Hugging Face's config.json. Rule: a key that changes the mathematics is
// understood or refused by name, never skipped. Dropout is the run's choice: neither read nor
// written.
namespace rankine {

// Reads the keys of transformers 4 and 5; missing keys take the family's defaults. Error{data}
// starting with `what` for everything that is malformed or cannot be computed here.
ModelConfig parse_hf_config(std::string_view text, std::string_view what);
ModelConfig read_hf_config(const std::filesystem::path& file);

// The text of a config.json that both generations of transformers read, and parse_hf_config reads
// back as an equal config. `stored` is the dtype of the weights. Error{data} naming the first value
// that the family's config.json cannot say.
std::string hf_config_text(const ModelConfig& config, DType stored);
// The text of a generation_config.json; empty when neither bos nor eos is known.
std::string hf_generation_config_text(const ModelConfig& config);

}  // namespace rankine
