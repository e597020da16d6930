#pragma once
#include <string>
#include <vector>

#include "model_source.h"

namespace rankine {

// The tokenizer that goes with a model. `wanted` overrides it: "bytes", a tokenizer.json or a
// folder with one. Error{usage} when the model has none, {data} when it has more tokens than the
// model.
TextTokenizer tokenizer_of(const ModelSource& source, const std::string& wanted);

// The tokens that end a text, by config.json, generation_config.json and, where not null, the
// tokenizer.
std::vector<int32_t> end_tokens_of(const ModelSource& source, const BpeTokenizer* tokenizer);
// The model's ids that are no token of the tokenizer.
std::vector<int32_t> ids_without_token(const ModelConfig& config, const BpeTokenizer& tokenizer);

}  // namespace rankine
