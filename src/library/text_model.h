#pragma once
#include <string>
#include <vector>

#include "base/options.h"
#include "library/model_source.h"

namespace rankine {

// A trained model that reads or writes text, as a user names it.
struct TextModelOptions {
  std::string model, tokenizer;
  std::string begin_token, end_token;  // "": the tokenizer's or the model's own
};
// --model, --tokenizer and --begin-token.
void declare_options(OptionTable& table, TextModelOptions& options);
// That model; Error{usage} for a preset, which has no weights, otherwise as open_model().
ModelSource open_text_model(const TextModelOptions& options);

// The tokenizer that goes with a model, or the one that the options name instead, with the tokens
// around texts that they name. Error{usage} when there is none, {data} when it has more tokens than
// the model.
TextTokenizer tokenizer_of(const ModelSource& source, const TextModelOptions& options);
// The model's ids that are no token of the tokenizer.
std::vector<int32_t> ids_without_token(const ModelConfig& config, const BpeTokenizer& tokenizer);

}  // namespace rankine
