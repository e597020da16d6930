#include "library/train_setup.h"

#include "base/file.h"
#include "base/text.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

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

bool parse_train_options(OptionTable& table, TrainOptions& o, const CommandArguments& arguments) {
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
  StoredRun stored = stored_run(o.run.output);
  o = defaults;
  // A --config that is given takes its place.
  parsed = parse_options(table, arguments, stored.configuration);
  if (table.origin("tokenizer") != OptionOrigin::command_line) o.run_tokenizer = stored.tokenizer;
  o.stored = std::move(stored);
  return true;
}

void settle(TrainOptions& o, const OptionTable& table) {
  o.warnings = settle(o.optimizer, o.run.steps, table);
  if (o.data.validation_fraction == 0)
    refuse_without_effect(table, {"eval-interval", "eval-batches"}, "with --validation-fraction 0");
  const bool stored = table.origin("delayed-update") == OptionOrigin::stored &&
                      table.origin("steps") == OptionOrigin::stored;
  require(o.parallel.delayed_update <= o.run.steps || stored ||
              o.parallel.offload_optimizer == Offload::none,
          ErrorKind::usage,
          "--delayed-update {} is behind the last of --steps {}: it would have no effect; give at "
          "most {}",
          o.parallel.delayed_update, o.run.steps, o.run.steps);
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

}  // namespace rankine
