#include "library/model_source.h"

#include <algorithm>
#include <iterator>

#include "base/file.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_folder.h"
#include "checkpoint/hf_generation.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/hf_names.h"
#include "checkpoint/run_checkpoints.h"
#include "runtime/finite.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

constexpr const char* generation_config_name = "generation_config.json";

// A model works without its tokenizer, so that one which is not understood is no fault yet.
void open_tokenizer(ModelSource& source) {
  if (!TextTokenizer::lies_in(source.folder)) return;
  try {
    source.text_tokenizer =
        std::make_shared<const TextTokenizer>(TextTokenizer::open(source.folder));
  } catch (const Error& error) {
    source.tokenizer_fault = error.what();
  }
}

void read_generation(ModelSource& source) {
  HfGeneration generation = read_hf_generation(source.folder, source.config.vocabulary);
  source.generation_eos = std::move(generation.eos);
  std::ranges::move(generation.notes, std::back_inserter(source.notes));
  const fs::path file = source.folder / generation_config_name;
  if (is_there(file)) source.generation_config = read_text(file);
}

ModelSource open_checkpoint(const fs::path& folder) {
  const Manifest manifest = read_manifest(folder);
  read_small_files(folder, manifest);  // compares them with their checksums
  ModelSource source{ModelSource::Kind::checkpoint, folder, {}, {}};
  if (!manifest.sealed) source.notes.push_back(unsealed_warning(folder));
  source.state = parse_run_state(manifest.state, (folder / manifest_name).string());
  source.config = source.state->model;
  source.tokenizer = source.state->tokenizer;
  read_generation(source);
  open_tokenizer(source);
  if (source.text_tokenizer == nullptr && source.tokenizer == "bytes")
    source.text_tokenizer = std::make_shared<const TextTokenizer>(TextTokenizer::bytes());
  return source;
}

}  // namespace

ModelSource open_model(const std::string& name) {
  const fs::path folder = name;
  if (!is_folder(folder)) {
    require(!is_there(folder) && name.find('/') == std::string::npos, ErrorKind::usage,
            "model '{}' is no folder; give a folder with a config.json, a run's folder or a preset",
            name);
    return {ModelSource::Kind::preset, {}, model_preset(name), {}};
  }
  if (is_there(folder / manifest_name)) return open_checkpoint(folder);
  const NewestCheckpoint newest = newest_checkpoint(folder);
  if (newest.found) {
    ModelSource source = open_checkpoint(newest.found->folder);
    for (const std::string& warning : fallback_warnings(newest)) source.notes.push_back(warning);
    return source;
  }
  require(newest.skipped.empty(), ErrorKind::data, "'{}' holds no complete checkpoint: {}", name,
          newest.skipped.empty() ? "" : newest.skipped.front());
  if (!is_there(folder / "config.json")) fail_without_config(folder);
  ModelSource source{ModelSource::Kind::hugging_face, folder, {}, {}};
  source.config = read_hf_config(folder / "config.json");
  source.notes =
      leave_out_foreign_ids(source.config, fmt::format("'{}'", (folder / "config.json").string()));
  std::ranges::copy(hf_folder_notes(folder), std::back_inserter(source.notes));
  read_generation(source);
  open_tokenizer(source);
  if (source.text_tokenizer != nullptr) source.tokenizer = source.text_tokenizer->identity();
  return source;
}

std::map<std::string, std::string> carried_files(const ModelSource& source) {
  std::map<std::string, std::string> files;
  if (source.text_tokenizer != nullptr) {
    files = source.text_tokenizer->files();
  } else {
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                             "chat_template.jinja", "vocab.json", "merges.txt", "tokenizer.model"})
      if (is_there(source.folder / name)) files.emplace(name, read_text(source.folder / name));
  }
  if (!source.generation_config.empty())
    files.emplace(generation_config_name, source.generation_config);
  return files;
}

TextTokenizer with_bounds_of(const TextTokenizer& tokenizer, const ModelConfig& config,
                             const std::string& begin, const std::string& end) {
  const BpeTokenizer& bpe = tokenizer.bpe();
  const bool lacks_end = bpe.special().end < 0 && bpe.token_id("<|endoftext|>") < 0;
  if (end.empty() && lacks_end && config.eos >= 0 && bpe.is_token(static_cast<int32_t>(config.eos)))
    return tokenizer.with_bounds(begin, bpe.spelled(static_cast<int32_t>(config.eos)));
  return tokenizer.with_bounds(begin, end);
}

namespace {

void require_finite(const ModelSource& source, const Engine& engine) {
  std::vector<NamedTensor> weights;
  if (engine.store().counts()) weights = engine.store().weights(Copies::counted);
  const TensorGroup group{"weights", weights};
  const auto found = find_non_finite(engine, std::span(&group, 1));
  if (!found) return;
  HfPlace place{found->tensor, found->index};
  if (source.kind == ModelSource::Kind::hugging_face)
    place = hf_place(source.config, found->tensor, found->index);
  fail(ErrorKind::data, "'{}': {}; get the files again, or use an earlier checkpoint",
       source.folder.string(), describe(*found, place.name, place.index));
}

}  // namespace
void warn_of(const ModelSource& source, Log& log) {
  for (const std::string& note : source.notes) warn_line(log, "{}", note);
}

void warn_of(const BpeTokenizer& tokenizer, Log& log) {
  for (const std::string& note : tokenizer.notes()) warn_line(log, "{}", note);
}

void warn_of(const BpeTokenizer& tokenizer, int64_t vocabulary, Log& log) {
  warn_of(tokenizer, log);
  if (tokenizer.vocabulary() > vocabulary)
    warn_line(log,
              "the tokenizer's special tokens from id {} on ('{}') are beyond the model's "
              "vocabulary: they can be neither read nor written",
              vocabulary, tokenizer.added_text(static_cast<int32_t>(tokenizer.vocabulary() - 1)));
}

void load_weights_from(const ModelSource& source, Engine& engine, Log& log) {
  warn_of(source, log);
  Ops& ops = engine.executor().ops();
  const std::vector<NamedTensor> weights = engine.store().weights();
  switch (source.kind) {
    case ModelSource::Kind::preset:
      fail(ErrorKind::usage, "a preset is a shape without weights; give the folder of a model");
    case ModelSource::Kind::hugging_face:
      for (const std::string& warning : import_hf(source.folder, source.config, weights, ops))
        warn_line(log, "{}", warning);
      break;
    case ModelSource::Kind::checkpoint:
      load_weights(source.folder, weights, ops);
      break;
  }
  require_finite(source, engine);
  engine.store().refresh_compute();
  require_computable(engine);
}

std::string model_line(const ModelConfig& c) {
  return fmt::format(
      "{}, {} layers, width {}, {} heads ({} key/value), feed-forward {}, "
      "vocabulary {}, {} parameters",
      family_name(c.family), c.layers, c.hidden, c.heads, c.kv_heads, c.feed_forward, c.vocabulary,
      format_count(static_cast<double>(parameter_count(c))));
}

}  // namespace rankine
