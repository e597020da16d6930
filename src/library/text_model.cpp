#include "library/text_model.h"

#include "data/options.h"

namespace rankine {

void declare_options(OptionTable& table, TextModelOptions& o) {
  table.text({"model", "load"}, &o.model, "folder of a run, a checkpoint or a Hugging Face model",
             "FOLDER");
  table.text({"tokenizer"}, &o.tokenizer,
             "bytes, a tokenizer.json or a folder with one; empty: the model's own", "NAME");
  declare_begin_token(table, o.begin_token);
}

ModelSource open_text_model(const TextModelOptions& o) {
  ModelSource source = open_model(o.model);
  require(source.kind != ModelSource::Kind::preset, ErrorKind::usage,
          "'{}' is a preset, a shape without weights; give the folder of a model", o.model);
  return source;
}

TextTokenizer tokenizer_of(const ModelSource& source, const TextModelOptions& o) {
  const std::string& wanted = o.tokenizer;
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
  return with_bounds_of(tokenizer, source.config, o.begin_token, o.end_token);
}

std::vector<int32_t> ids_without_token(const ModelConfig& config, const BpeTokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < config.vocabulary; ++id)
    if (!tokenizer.is_token(id)) ids.push_back(id);
  return ids;
}

}  // namespace rankine
