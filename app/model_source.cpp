#include "model_source.h"

#include "base/file.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/run_checkpoints.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

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

ModelSource open_checkpoint(const fs::path& folder) {
  const Manifest manifest = read_manifest(folder);
  read_small_files(folder, manifest);  // compares them with their checksums
  ModelSource source{ModelSource::Kind::checkpoint, folder, {}, {}};
  if (!manifest.sealed) source.warnings.push_back(unsealed_warning(folder));
  source.state = parse_run_state(manifest.state, (folder / manifest_name).string());
  source.config = source.state->model;
  source.tokenizer = source.state->tokenizer;
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
    for (const std::string& warning : fallback_warnings(newest)) source.warnings.push_back(warning);
    return source;
  }
  require(newest.skipped.empty(), ErrorKind::data, "'{}' holds no complete checkpoint: {}", name,
          newest.skipped.empty() ? "" : newest.skipped.front());
  require(is_there(folder / "config.json"), ErrorKind::data,
          "'{}' holds neither a config.json nor a complete checkpoint", name);
  ModelSource source{ModelSource::Kind::hugging_face, folder, {}, {}};
  source.config = read_hf_config(folder / "config.json");
  open_tokenizer(source);
  if (source.text_tokenizer != nullptr) source.tokenizer = source.text_tokenizer->identity();
  return source;
}

std::map<std::string, std::string> tokenizer_files(const ModelSource& source) {
  if (source.text_tokenizer != nullptr) return source.text_tokenizer->files();
  std::map<std::string, std::string> files;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "vocab.json", "merges.txt", "tokenizer.model"})
    if (is_there(source.folder / name)) files.emplace(name, read_text(source.folder / name));
  return files;
}

void load_weights_from(const ModelSource& source, Engine& engine, Log& log) {
  Ops& ops = engine.executor().ops();
  const std::vector<NamedTensor> weights = engine.store().weights();
  for (const std::string& warning : source.warnings) warn_line(log, "{}", warning);
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
  engine.store().refresh_compute();
}

std::string model_line(const ModelConfig& c) {
  return fmt::format(
      "{}, {} layers, width {}, {} heads ({} key/value), feed-forward {}, "
      "vocabulary {}, {} parameters",
      family_name(c.family), c.layers, c.hidden, c.heads, c.kv_heads, c.feed_forward, c.vocabulary,
      format_count(static_cast<double>(parameter_count(c))));
}

}  // namespace rankine
