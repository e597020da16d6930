#include "data/tokenizer/special_texts.h"

#include <array>

#include "base/error.h"
#include "base/file.h"
#include "data/tokenizer/json_place.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct ClassDefaults {
  std::string_view name;  // without "Fast"
  std::string_view begin, end, pad, unknown;
};
constexpr std::string_view end_of_text = "<|endoftext|>";
constexpr std::array<ClassDefaults, 9> classes{{
    {"GPT2Tokenizer", end_of_text, end_of_text, "", end_of_text},
    {"GPTNeoXTokenizer", end_of_text, end_of_text, "", end_of_text},
    {"Qwen2Tokenizer", "", end_of_text, end_of_text, end_of_text},
    {"LlamaTokenizer", "<s>", "</s>", "", "<unk>"},
    {"CodeLlamaTokenizer", "<s>", "</s>", "", "<unk>"},
    {"GemmaTokenizer", "<bos>", "<eos>", "<pad>", "<unk>"},
    {"BloomTokenizer", "<s>", "</s>", "<pad>", "<unk>"},
    {"CohereTokenizer", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<PAD>", "<UNK>"},
    {"XGLMTokenizer", "<s>", "</s>", "<pad>", "<unk>"},
}};

const ClassDefaults* defaults_of(std::string_view name) {
  constexpr std::string_view fast = "Fast";
  if (name.ends_with(fast)) name.remove_suffix(fast.size());
  for (const ClassDefaults& entry : classes)
    if (entry.name == name) return &entry;
  return nullptr;
}

Json parsed(const std::string& text, const fs::path& file) {
  if (text.empty()) return Json::object();
  Json json = parse_tokenizer_json(text, file.string());
  require(json.is_object(), ErrorKind::data, "'{}' is no JSON object", file.string());
  return json;
}

// The text of a token, which is a string or an object with "content"; nothing where the file does
// not speak of it, "" for null.
std::optional<std::string> token_text(const Json& file, const char* key) {
  const auto at = file.find(key);
  if (at == file.end()) return std::nullopt;
  if (at->is_string()) return at->get<std::string>();
  if (at->is_object() && at->contains("content") && at->at("content").is_string())
    return at->at("content").get<std::string>();
  return "";
}

std::optional<bool> flag(const Json& file, const char* key) {
  const auto at = file.find(key);
  if (at == file.end() || !at->is_boolean()) return std::nullopt;
  return at->get<bool>();
}

}  // namespace

TokenizerSettings read_tokenizer_settings(const fs::path& folder) {
  const auto text_of = [&](const char* name) {
    std::error_code code;
    return fs::exists(folder / name, code) ? read_text(folder / name) : std::string();
  };
  return {text_of("tokenizer_config.json"), text_of("special_tokens_map.json")};
}

SpecialTexts special_texts(const TokenizerSettings& settings, const fs::path& folder,
                           std::string_view assumed_class) {
  const Json config = parsed(settings.config, folder / "tokenizer_config.json");
  const Json map = parsed(settings.map, folder / "special_tokens_map.json");
  const auto class_text = token_text(config, "tokenizer_class");
  const ClassDefaults* defaults = defaults_of(class_text ? *class_text : assumed_class);
  SpecialTexts out;
  out.known = defaults != nullptr;
  const auto text = [&](const char* key, std::string_view ClassDefaults::*fallback) {
    std::optional<std::string> said = token_text(config, key);
    if (!said) said = token_text(map, key);
    out.known = out.known || said.has_value();
    if (said) return *said;
    return defaults != nullptr ? std::string(defaults->*fallback) : std::string();
  };
  out.begin = text("bos_token", &ClassDefaults::begin);
  out.end = text("eos_token", &ClassDefaults::end);
  out.pad = text("pad_token", &ClassDefaults::pad);
  out.unknown = text("unk_token", &ClassDefaults::unknown);
  out.adds_begin = flag(config, "add_bos_token");
  out.adds_end = flag(config, "add_eos_token");
  return out;
}

}  // namespace rankine
