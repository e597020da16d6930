#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/text_tokenizer.h"
#include "runtime/engine.h"
#include "runtime/run_state.h"

namespace rankine {

// Where a model comes from: a preset's shape, a Hugging Face folder, or a checkpoint (a run's
// folder means its newest complete one).
struct ModelSource {
  enum class Kind : uint8_t { preset, hugging_face, checkpoint };
  Kind kind = Kind::preset;
  std::filesystem::path folder;
  ModelConfig config;
  std::optional<RunState> state;  // of a checkpoint
  std::string tokenizer = {};     // TextTokenizer::identity(), or "" when it is not known
  // What text becomes tokens with; null when there is none or its files are not understood.
  std::shared_ptr<const TextTokenizer> text_tokenizer = {};
  std::string tokenizer_fault = {};          // why not
  std::vector<int64_t> generation_eos = {};  // what ends a text, by generation_config.json
  std::string generation_config = {};        // that file's text, "" for none
  std::vector<std::string> notes = {};  // what is left out of its files or gone round, for the user
};

// `name` is a folder or a preset; Error{usage} or {data} when it is neither.
ModelSource open_model(const std::string& name);
// Fills the engine's weights from the source (a preset: Error{usage}, it has none). Error{data}
// that names the first weight that is not finite; warns of what is left out. All ranks of the
// engine call it together.
void load_weights_from(const ModelSource& source, Engine& engine, Log& log);

// The files that go with the source's weights wherever they go: name -> text. The tokenizer's,
// whether they are understood or not, and generation_config.json.
std::map<std::string, std::string> carried_files(const ModelSource& source);
// The tokenizer as the model's files have it or as it was named, with the tokens that begin and
// end a text: those that are named (as --begin-token and --end-token do), otherwise its own,
// otherwise the model's.
TextTokenizer with_bounds_of(const TextTokenizer& tokenizer, const ModelConfig& config,
                             const std::string& begin, const std::string& end);
// What is left out of a model's files, or of a tokenizer's.
void warn_of(const ModelSource& source, Log& log);
void warn_of(const BpeTokenizer& tokenizer, Log& log);
// The same for a tokenizer that a model of this vocabulary works with.
void warn_of(const BpeTokenizer& tokenizer, int64_t vocabulary, Log& log);

// The texts of --help and of a run's opening lines.
std::string model_line(
    const ModelConfig& config);  // "llama, 6 layers, 256 wide, ..., 4.8 M parameters"

}  // namespace rankine
