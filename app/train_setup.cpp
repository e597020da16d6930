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
  return true;
}

ModelConfig training_config(const TrainOptions& o, const ModelSource& source,
                            const TokenData& data) {
  ModelConfig config = source.config;
  const bool shape_only = source.kind == ModelSource::Kind::preset || o.from_scratch;
  if (shape_only && data.is_bytes()) {
    config.vocabulary = byte_vocabulary;
    config.bos = config.eos = end_of_text_byte_token;
    config.pad = -1;
    config.more_eos.clear();
  }
  config.dropout = o.run.dropout;
  require(o.run.seq_length <= config.positions, ErrorKind::usage,
          "--seq-length {} exceeds the model's {} positions", o.run.seq_length, config.positions);
  require(!data.is_bytes() || shape_only || source.tokenizer == "bytes", ErrorKind::usage,
          "text would become bytes, but the model of '{}' was trained with another tokenizer; give "
          "token files, or --from-scratch",
          o.model);
  data.check_vocabulary(config.vocabulary);
  return config;
}

fs::path prepare_output(const TrainOptions& o) {
  fs::path folder = o.run.output;
  for (int n = 1; folder.empty(); ++n) {
    const fs::path candidate =
        fs::path("runs") / fmt::format("{}-{}", fs::path(o.model).filename().string(), n);
    if (!fs::exists(candidate)) folder = candidate;
  }
  if (o.run.resume)
    require(newest_complete_checkpoint(folder).has_value(), ErrorKind::data,
            "'{}' holds no complete checkpoint to resume from", folder.string());
  else
    require(!holds_a_run(folder), ErrorKind::usage,
            "'{}' holds a run already; continue it with --resume, or choose another --output",
            folder.string());
  make_folders(folder);
  return folder;
}

std::string data_identity(const TokenData& data) {
  constexpr uint64_t samples = 1024, length = 64;
  uint64_t hash = hash_text("tokens");
  std::vector<int32_t> tokens(length);
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t count = std::min(length, data.count());
    data.copy((data.count() - count) / samples * i, count, tokens.data());
    hash = hash_text({reinterpret_cast<const char*>(tokens.data()), count * sizeof(int32_t)}, hash);
  }
  return fmt::format("{} tokens, {:016x}", data.count(), hash);
}

}  // namespace rankine
