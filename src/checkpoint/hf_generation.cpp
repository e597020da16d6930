#include "checkpoint/hf_generation.h"

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/json.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

constexpr int64_t most = (int64_t{1} << 31) - 1;

std::string note_on(const std::string& what, const char* key, int64_t id, int64_t vocabulary) {
  return fmt::format("{}: '{}' is {}, and the model's vocabulary has {}: it is left out", what, key,
                     id, vocabulary);
}

}  // namespace

std::vector<std::string> leave_out_foreign_ids(ModelConfig& config, const std::string& what) {
  std::vector<std::string> notes;
  const auto is_foreign = [&](const char* key, int64_t id) {
    if (id < config.vocabulary) return false;
    notes.push_back(note_on(what, key, id, config.vocabulary));
    return true;
  };
  if (is_foreign("bos_token_id", config.bos)) config.bos = -1;
  if (is_foreign("pad_token_id", config.pad)) config.pad = -1;
  std::erase_if(config.more_eos, [&](int64_t id) { return is_foreign("eos_token_id", id); });
  if (!is_foreign("eos_token_id", config.eos)) return notes;
  config.eos = -1;
  if (config.more_eos.empty()) return notes;
  config.eos = config.more_eos.front();
  config.more_eos.erase(config.more_eos.begin());
  return notes;
}

HfGeneration read_hf_generation(const fs::path& folder, int64_t vocabulary) {
  HfGeneration out;
  const fs::path file = folder / "generation_config.json";
  std::error_code code;
  if (!fs::exists(file, code)) return out;
  const std::string what = fmt::format("'{}'", file.string());
  const nlohmann::json json = parse_json(read_text(file), what);
  const JsonObject object(json, what);
  const auto read = [&](const char* key, const nlohmann::json& value) {
    const int64_t id = json_integer(value, fmt::format("{}: '{}'", what, key), -1, most);
    if (id >= vocabulary) out.notes.push_back(note_on(what, key, id, vocabulary));
    return id >= vocabulary ? -1 : id;
  };
  for (const char* key : {"bos_token_id", "pad_token_id"})
    if (const nlohmann::json* value = object.find(key)) read(key, *value);
  const nlohmann::json* eos = object.find("eos_token_id");
  if (eos == nullptr) return out;
  for (const nlohmann::json& value : eos->is_array() ? *eos : nlohmann::json::array({*eos}))
    if (const int64_t id = read("eos_token_id", value); id >= 0) out.eos.push_back(id);
  return out;
}

}  // namespace rankine
