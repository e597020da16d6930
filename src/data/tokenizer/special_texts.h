#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

// Which tokens begin, end and pad texts, as the files beside a tokenizer.json say.
namespace rankine {

// The texts of those files, "" for none.
struct TokenizerSettings {
  std::string config;  // tokenizer_config.json
  std::string map;     // special_tokens_map.json
};
TokenizerSettings read_tokenizer_settings(const std::filesystem::path& folder);

struct SpecialTexts {
  // As they are spelled; "" where the files say that there is none.
  std::string begin, end, pad, unknown;
  bool known = false;  // whether the files, or the tokenizer's class, say anything of them
  std::optional<bool> adds_begin, adds_end;  // whether texts get them; nothing: tokenizer.json says
};
// A token that tokenizer_config.json does not name is that of special_tokens_map.json, otherwise
// the default of the tokenizer's class in Hugging Face's library; null there means that there is
// none. `assumed_class` is for files that name no class. Error{data} for files that are damaged.
SpecialTexts special_texts(const TokenizerSettings& settings, const std::filesystem::path& folder,
                           std::string_view assumed_class);

}  // namespace rankine
