#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_config.h"
#include "command.h"
#include "data/data_files.h"
#include "data/show_samples.h"
#include "data/token_file.h"
#include "data/token_source.h"
#include "library/model_source.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json model_json(const ModelSource& source) {
  Json json;
  json["kind"] = source.kind == ModelSource::Kind::preset         ? "preset"
                 : source.kind == ModelSource::Kind::hugging_face ? "hugging_face"
                                                                  : "checkpoint";
  if (!source.folder.empty()) json["folder"] = source.folder.string();
  json["parameters"] = parameter_count(source.config);
  json["tokenizer"] = source.tokenizer.empty() ? Json(nullptr) : Json(source.tokenizer);
  json["config"] = Json::parse(hf_config_text(source.config, DType::f32));
  Json tensors = Json::array();
  for (const ParamSpec& spec : model_parameters(source.config))
    tensors.push_back({{"name", spec.name}, {"shape", spec.shape.dims()}});
  json["tensors"] = tensors;
  return json;
}

Json checkpoint_json(const ModelSource& source) {
  Json json;
  const Manifest manifest = read_manifest(source.folder);
  uint64_t bytes = 0, files = 0;
  for (const ManifestFile& file : manifest.files) {
    if (file.pieces.empty()) continue;
    bytes += file.bytes;
    ++files;
  }
  json["step"] = source.state->step;
  json["tokens"] = source.state->tokens;
  json["files"] = files;
  json["bytes"] = bytes;
  json["tensors"] = manifest.tensors.size();
  return json;
}

// First and last line of a run's metrics.
Json run_json(const fs::path& folder) {
  Json json;
  const fs::path metrics = folder / "metrics.jsonl";
  if (!is_there(metrics)) return json;
  const std::string text = read_text(metrics);
  const auto line = [](const std::string& s) { return Json::parse(s, nullptr, false); };
  if (text.empty() || text.back() != '\n') return json;
  const size_t last = text.rfind('\n', text.size() - 2);
  json["first"] = line(text.substr(0, text.find('\n')));
  json["last"] = line(text.substr(last == std::string::npos ? 0 : last + 1));
  return json;
}

bool is_token_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code) &&
         detect_format(path, DataFormat::automatic).format == DataFormat::tokens;
}

// What a token file's header says, and its tokenizer.
Json token_file_json(const fs::path& path) {
  const MappedFile file(path);
  const TokenFileFacts facts = read_token_file({file.data(), file.size()}, path.string()).facts;
  const TextTokenizer tokenizer =
      TextTokenizer::parse(facts.tokenizer_json, facts.tokenizer_config, path.string());
  Json json;
  json["kind"] = "token_file";
  json["tokens"] = facts.tokens;
  json[facts.samples ? "samples" : "documents"] = facts.documents;
  json["bytes_per_token"] = static_cast<int>(facts.width);
  json["vocabulary"] = facts.vocabulary;
  json["tokenizer"] = tokenizer.identity();
  json["notes"] = facts.notes;
  return json;
}

void show_token_file(const fs::path& path, uint64_t count) {
  const TokenData data = TokenData::open({{path, DataFormat::tokens}});
  const TextTokenizer tokenizer = TextTokenizer::parse(
      data.facts()->tokenizer_json, data.facts()->tokenizer_config, path.string());
  fmt::print("{}", shown_samples(data, tokenizer.bpe(), count));
}

void print_text(const Json& json, const ModelSource& source) {
  fmt::print("{}\n", model_line(source.config));
  if (!source.folder.empty())
    fmt::print("{} in '{}', tokenizer {}\n", json["kind"].get<std::string>(),
               source.folder.string(), source.tokenizer.empty() ? "unknown" : source.tokenizer);
  if (json.contains("checkpoint"))
    fmt::print(
        "step {}, {} tokens seen, {} tensors in {} files, {}\n",
        json["checkpoint"]["step"].get<int64_t>(), json["checkpoint"]["tokens"].get<int64_t>(),
        json["checkpoint"]["tensors"].get<int64_t>(), json["checkpoint"]["files"].get<int64_t>(),
        format_bytes(json["checkpoint"]["bytes"].get<uint64_t>()));
  if (json.contains("run") && json["run"].contains("last"))
    fmt::print("run: first step {}\n     last step  {}\n", json["run"]["first"].dump(),
               json["run"]["last"].dump());
  for (const ParamSpec& spec : model_parameters(source.config))
    fmt::print("  {:<40} {}\n", spec.name, to_string(spec.shape));
}

}  // namespace

int run_inspect(const CommandArguments& arguments) {
  std::string target;
  bool as_json = false;
  int64_t show = 0;
  OptionTable table;
  table.positional("TARGET", &target,
                   "a preset, the folder of a model, a checkpoint or a run, or a token file");
  table.flag({"json"}, &as_json, "print one JSON object");
  table.integer({"show"}, &show,
                "of a token file: print its first so many documents or samples, what is learned "
                "between [[ and ]]",
                {.least = 0});
  if (parse_options(table, arguments).help) {
    fmt::print("{}", help_text(table, "rankine inspect",
                               "Shows a model, a checkpoint, a run or a token file."));
    return 0;
  }
  if (is_token_file(target) && show > 0) {
    show_token_file(target, static_cast<uint64_t>(show));
    return 0;
  }
  require(show == 0, ErrorKind::usage, "--show is for token files; '{}' is none", target);
  if (is_token_file(target)) {
    fmt::print("{}\n", token_file_json(target).dump(2));
    return 0;
  }
  const ModelSource source = open_model(target);
  Log log(stderr);
  warn_of(source, log);
  Json json = model_json(source);
  if (source.kind == ModelSource::Kind::checkpoint) json["checkpoint"] = checkpoint_json(source);
  if (is_there(fs::path(target) / "metrics.jsonl")) json["run"] = run_json(target);
  if (as_json)
    fmt::print("{}\n", json.dump(2));
  else
    print_text(json, source);
  return 0;
}

}  // namespace rankine
