#include "text_model.h"

#include <algorithm>

namespace rankine {

void declare_options(OptionTable& table, TextModelOptions& o) {
  table.text({"model", "load"}, &o.model, "folder of a run, a checkpoint or a Hugging Face model",
             "FOLDER");
  table.text({"tokenizer"}, &o.tokenizer,
             "bytes, a tokenizer.json or a folder with one; empty: the model's own", "NAME");
}

ModelSource open_text_model(const TextModelOptions& o) {
  ModelSource source = open_model(o.model);
  require(source.kind != ModelSource::Kind::preset, ErrorKind::usage,
          "'{}' is a preset, a shape without weights; give the folder of a model", o.model);
  return source;
}

TextTokenizer tokenizer_of(const ModelSource& source, const std::string& wanted) {
  require(!wanted.empty() || source.text_tokenizer != nullptr, ErrorKind::usage,
          "'{}' has no tokenizer that is understood{}; name one with --tokenizer: bytes, a "
          "tokenizer.json or a folder with one",
          source.folder.string(),
          source.tokenizer_fault.empty() ? "" : " (" + source.tokenizer_fault + ")");
  TextTokenizer tokenizer = wanted.empty() ? *source.text_tokenizer : TextTokenizer::open(wanted);
  require(
      tokenizer.bpe().text_vocabulary() <= source.config.vocabulary, ErrorKind::data,
      "the tokenizer has ids up to {} and the model a vocabulary of {}: they do not go together",
      tokenizer.vocabulary() - 1, source.config.vocabulary);
  return tokenizer;
}

std::vector<int32_t> end_tokens_of(const ModelSource& source, const BpeTokenizer* tokenizer) {
  std::vector<int64_t> ids = source.config.more_eos;
  ids.push_back(source.config.eos);
  if (tokenizer != nullptr) ids.push_back(tokenizer->special().end);
  ids.insert(ids.end(), source.generation_eos.begin(), source.generation_eos.end());
  std::vector<int32_t> out;
  for (const int64_t id : ids)
    if (id >= 0 && id < source.config.vocabulary && std::ranges::find(out, id) == out.end())
      out.push_back(static_cast<int32_t>(id));
  return out;
}

std::vector<int32_t> ids_without_token(const ModelConfig& config, const BpeTokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < config.vocabulary; ++id)
    if (!tokenizer.is_token(id)) ids.push_back(id);
  return ids;
}

}  // namespace rankine
