#pragma once
#include <string>
#include <vector>

#include "base/options.h"
#include "model_source.h"

namespace rankine {

// A trained model that reads or writes text, as a user names it.
struct TextModelOptions {
  std::string model, tokenizer;
};
// --model and --tokenizer.
void declare_options(OptionTable& table, TextModelOptions& options);
// That model; Error{usage} for a preset, which has no weights, otherwise as open_model().
ModelSource open_text_model(const TextModelOptions& options);

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
