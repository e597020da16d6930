#include "train_setup.h"

#include "base/file.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

constexpr const char* stored_options = "config.toml";

bool holds_a_run(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) return false;
  return fs::exists(folder / stored_options, code) || newest_complete_checkpoint(folder);
}

}  // namespace

void declare_options(OptionTable& table, TrainOptions& o) {
  table.heading("Model");
  table.text({"model", "load"}, &o.model,
             "a preset, or the folder of a Hugging Face model, a run or a checkpoint to start from",
             "NAME");
  table.flag({"from-scratch"}, &o.from_scratch,
             "take only the shape of --model and start from random weights");
  declare_options(table, o.data);
  declare_options(table, o.run);
  declare_options(table, o.optimizer);
  declare_options(table, o.parallel);
}

bool parse_train_options(OptionTable& table, TrainOptions& o, const Arguments& arguments) {
  const TrainOptions defaults = o;
  ParsedOptions parsed = parse_options(table, arguments);
  if (parsed.help) {
    fmt::print("{}", help_text(table, "rankine train",
                               "Trains a language model. `rankine train --data FILE` is enough."));
    return false;
  }
  if (!o.run.resume) return true;
  require(!o.run.output.empty(), ErrorKind::usage,
          "--resume needs --output, the folder of the run to continue");
  require(newest_complete_checkpoint(o.run.output).has_value(), ErrorKind::data,
          "'{}' holds no complete checkpoint to resume from", o.run.output.string());
  const fs::path stored = o.run.output / stored_options;
  if (!parsed.config.empty() || !fs::exists(stored)) return true;
  Arguments with_stored = arguments;
  with_stored.insert(with_stored.begin(), {"--config", stored.string()});
  o = defaults;
  parse_options(table, with_stored);
  if (table.origin("tokenizer") != OptionOrigin::command_line &&
      TextTokenizer::lies_in(o.run.output))
    o.run_tokenizer = o.run.output;
  return true;
}

ModelConfig training_config(const TrainOptions& o, const ModelSource& source,
                            const TextTokenizer* tokenizer) {
  ModelConfig config = source.config;
  const bool shape_only = source.kind == ModelSource::Kind::preset || o.from_scratch;
  // A model's own vocabulary may be larger than its tokenizer's.
  const bool own = tokenizer != nullptr && source.tokenizer == tokenizer->identity() &&
                   config.vocabulary >= tokenizer->vocabulary();
  if (shape_only && tokenizer != nullptr && !own) {
    const SpecialIds& special = tokenizer->bpe().special();
    config.vocabulary = tokenizer->vocabulary();
    config.eos = special.end;
    config.bos = special.begin >= 0 ? special.begin : special.end;
    config.pad = special.pad;
    config.more_eos.clear();
  }
  config.dropout = o.run.dropout;
  require(o.run.seq_length <= config.positions, ErrorKind::usage,
          "--seq-length {} exceeds the model's {} positions", o.run.seq_length, config.positions);
  require(tokenizer == nullptr || tokenizer->bpe().text_vocabulary() <= config.vocabulary,
          ErrorKind::data,
          "the tokenizer has a vocabulary of {}, the model of '{}' one of {}; give the model's own "
          "--tokenizer",
          tokenizer == nullptr ? 0 : tokenizer->vocabulary(), o.model, config.vocabulary);
  return config;
}

void make_paths_absolute(DataOptions& o) {
  for (fs::path& path : o.text.data) path = fs::absolute(path);
  if (!o.tokenizer.empty() && o.tokenizer != "bytes") o.tokenizer = fs::absolute(o.tokenizer);
  if (!o.cache.empty()) o.cache = fs::absolute(o.cache);
}

void check_output(const TrainOptions& o) {
  const fs::path& folder = o.run.output;
  if (folder.empty()) return;
  if (o.run.resume)
    require(newest_complete_checkpoint(folder).has_value(), ErrorKind::data,
            "'{}' holds no complete checkpoint to resume from", folder.string());
  else
    require(!holds_a_run(folder), ErrorKind::usage,
            "'{}' holds a run already; continue it with --resume, or choose another --output",
            folder.string());
}

fs::path prepare_output(const TrainOptions& o) {
  check_output(o);
  fs::path folder = o.run.output;
  for (int n = 1; folder.empty(); ++n) {
    const fs::path candidate =
        fs::path("runs") / fmt::format("{}-{}", fs::path(o.model).filename().string(), n);
    if (!fs::exists(candidate)) folder = candidate;
  }
  make_folders(folder);
  return folder;
}

}  // namespace rankine
