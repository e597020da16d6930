#include "checkpoint/hf_source.h"

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/hf_folder.h"
#include "checkpoint/json.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

}  // namespace

std::map<std::string, std::string> parse_hf_index(std::string_view text, std::string_view what) {
  const nlohmann::json root = parse_json(text, what);
  const nlohmann::json& map = JsonObject(root, what).at("weight_map");
  require(map.is_object() && !map.empty(), ErrorKind::data,
          "{}: 'weight_map' is not an object with tensors", what);
  std::map<std::string, std::string> out;
  for (const auto& [tensor, file] : map.items()) {
    require(file.is_string(), ErrorKind::data, "{}: the file of tensor '{}' is not a string", what,
            tensor);
    const auto& name = file.get_ref<const std::string&>();
    require(name.ends_with(".safetensors") && name.find_first_of("/\\") == std::string::npos,
            ErrorKind::data, "{}: '{}' is not the name of a safetensors file in the same folder",
            what, name);
    out.emplace(tensor, name);
  }
  return out;
}

HfSource::HfSource(const fs::path& folder) {
  const fs::path single = folder / single_name, index = folder / index_name;
  const bool has_single = reaches_file(single), has_index = reaches_file(index);
  if (!has_single && !has_index) fail_without_weights(folder);
  if (!has_single) {
    open_shards(folder, index);
    return;
  }
  if (has_index)
    warnings_.push_back(
        fmt::format("'{}' has both {} and {}; the index is not read, as in transformers",
                    folder.string(), single_name, index_name));
  const SafetensorsFile& file = files_.emplace(single_name, single).first->second;
  for (const SafetensorsEntry& entry : file.entries())
    tensors_.emplace(entry.name, Place{&file, &entry});
}

void HfSource::open_shards(const fs::path& folder, const fs::path& index) {
  const std::string what = fmt::format("'{}'", index.string());
  const auto map = parse_hf_index(read_text(index, uint64_t{1} << 28), what);
  for (const auto& [tensor, name] : map) {
    auto file = files_.find(name);
    if (file == files_.end()) {
      require(reaches_file(folder / name), ErrorKind::data, "{} lists the file '{}', which {}",
              what, name, absence_text(folder / name));
      file = files_.emplace(name, folder / name).first;
    }
    const SafetensorsEntry* entry = file->second.find(tensor);
    require(entry != nullptr, ErrorKind::data,
            "{} says that '{}' holds tensor '{}', but it does not", what, name, tensor);
    tensors_.emplace(tensor, Place{&file->second, entry});
  }
  for (const auto& [name, file] : files_)
    for (const SafetensorsEntry& entry : file.entries()) {
      const auto listed = map.find(entry.name);
      require(listed != map.end() && listed->second == name, ErrorKind::data,
              "{} does not say that '{}' holds tensor '{}', but it does", what, name, entry.name);
    }
}

}  // namespace rankine
