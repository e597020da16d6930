#include "checkpoint/hf_folder.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/json.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

constexpr const char* adapter_config = "adapter_config.json";
constexpr const char* to_safetensors =
    "save them as safetensors, in Python with AutoModelForCausalLM.from_pretrained('FOLDER')"
    ".save_pretrained('OTHER FOLDER')";
constexpr const char* to_official_names =
    "convert them to transformers' names and layout (model.safetensors) first";

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// "'meta-llama/Llama-3.2-1B'", or "its base model" when the file does not say.
std::string base_of_adapters(const fs::path& folder) {
  const fs::path file = folder / adapter_config;
  if (!reaches_file(file)) return "its base model";
  const std::string what = fmt::format("'{}'", file.string());
  const nlohmann::json json = parse_json(read_text(file), what);
  const std::string base = JsonObject(json, what).text_or("base_model_name_or_path", "");
  return base.empty() ? "its base model" : fmt::format("'{}'", base);
}

[[noreturn]] void fail_with_adapters(const fs::path& folder) {
  fail(ErrorKind::data,
       "'{}' holds adapters (LoRA) for {} and no weights of a model; merge them into it and save "
       "the whole model",
       folder.string(), base_of_adapters(folder));
}

struct Foreign {
  std::string_view begin, end;  // of a file's name
  const char* what;
  const char* cure;
};

// The first that is found is told, so that the likeliest to be meant stand in front.
constexpr std::array foreign_weights{
    Foreign{"model-", ".safetensors", "shards without model.safetensors.index.json",
            "download the index too"},
    Foreign{"consolidated", ".safetensors", "weights in their maker's own layout",
            to_official_names},
    Foreign{"consolidated", ".pth", "weights in their maker's own layout", to_official_names},
    Foreign{"", ".safetensors", "safetensors under another name",
            "name them model.safetensors if they are this model's weights"},
    Foreign{"pytorch_model", "", "PyTorch weights", to_safetensors},
    Foreign{"", ".gguf", "GGUF weights", to_official_names},
    Foreign{"tf_model", ".h5", "TensorFlow weights", to_safetensors},
    Foreign{"flax_model", ".msgpack", "Flax weights", to_safetensors},
    Foreign{"", ".bin", "PyTorch weights", to_safetensors},
    Foreign{"", ".pt", "PyTorch weights", to_safetensors},
};

bool holds_adapters(std::string_view name) {
  return name.starts_with("adapter_model.");
}

// The model class that a config.json brings along, "" for those of transformers.
std::string own_code(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  const std::string what = fmt::format("'{}'", file.string());
  const nlohmann::json config = parse_json(read_text(file), what);
  const nlohmann::json* map = JsonObject(config, what).find("auto_map");
  if (map == nullptr || !map->is_object() || !map->contains("AutoModelForCausalLM")) return "";
  return json_excerpt(map->at("AutoModelForCausalLM"));
}

// Left by training frameworks beside the weights.
bool is_of_a_run(std::string_view name) {
  return name == "training_args.bin" || name == "optimizer.pt" || name == "scheduler.pt";
}

// The first folder of snapshots/ that has a config.json, "" when there is none.
fs::path snapshot_of(const fs::path& folder) {
  for (const std::string& name : names_in(folder / "snapshots"))
    if (reaches_file(folder / "snapshots" / name / "config.json"))
      return folder / "snapshots" / name;
  return {};
}

}  // namespace

bool reaches_file(const fs::path& file) {
  std::error_code code;
  return fs::exists(file, code);
}

std::string absence_text(const fs::path& file) {
  std::error_code code;
  const fs::path target = fs::read_symlink(file, code);
  return code ? "is absent" : fmt::format("is a link to '{}', which is absent", target.string());
}

void fail_without_config(const fs::path& folder) {
  if (reaches_file(folder / adapter_config)) fail_with_adapters(folder);
  const fs::path snapshot = snapshot_of(folder);
  require(snapshot.empty(), ErrorKind::data,
          "'{}' is a folder of the Hub's cache; give the model in it: '{}'", folder.string(),
          snapshot.string());
  for (const std::string& name : names_in(folder)) {
    require(name != "config.json", ErrorKind::data, "'{}' {}", (folder / name).string(),
            absence_text(folder / name));
    require(!name.ends_with(".safetensors") && !name.ends_with(".bin"), ErrorKind::data,
            "'{}' holds {}, but no config.json that says what model it is of", folder.string(),
            name);
  }
  fail(ErrorKind::data, "'{}' holds neither a config.json nor a complete checkpoint",
       folder.string());
}

void fail_without_weights(const fs::path& folder) {
  std::error_code code;
  require(fs::is_directory(folder, code), ErrorKind::data, "'{}' is not a folder", folder.string());
  const std::vector<std::string> names = names_in(folder);
  for (const char* wanted : {"model.safetensors", "model.safetensors.index.json"})
    require(std::ranges::find(names, wanted) == names.end(), ErrorKind::data, "'{}' {}",
            (folder / wanted).string(), absence_text(folder / wanted));
  if (reaches_file(folder / adapter_config) || std::ranges::any_of(names, holds_adapters))
    fail_with_adapters(folder);
  for (const Foreign& foreign : foreign_weights)
    for (const std::string& name : names)
      require(!name.starts_with(foreign.begin) || !name.ends_with(foreign.end) || is_of_a_run(name),
              ErrorKind::data, "'{}' has only {} ({}); {}", folder.string(), name, foreign.what,
              foreign.cure);
  fail(ErrorKind::data, "'{}' has neither model.safetensors nor model.safetensors.index.json",
       folder.string());
}

std::vector<std::string> hf_folder_notes(const fs::path& folder) {
  std::vector<std::string> notes;
  const std::vector<std::string> names = names_in(folder);
  const auto adapters = std::ranges::find_if(names, holds_adapters);
  if (adapters != names.end())
    notes.push_back(fmt::format("'{}' holds adapters too ({}); they are not applied to its weights",
                                folder.string(), *adapters));
  else if (std::ranges::find(names, adapter_config) != names.end())
    notes.push_back(fmt::format(
        "'{}' holds an {} too; its weights are taken as they are, as those of a merged model",
        folder.string(), adapter_config));
  if (const std::string code = own_code(folder); !code.empty())
    notes.push_back(fmt::format(
        "'{}' names code of its own ({}), which is not run: its model_type says what is computed",
        (folder / "config.json").string(), code));
  return notes;
}

}  // namespace rankine
