#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

// generation_config.json as a whole: what it says beside the ids of special tokens, and how it is
// carried from a model to what is trained from it.
namespace rankine {

// How tokens are drawn unless the user says otherwise; nothing: the file does not say.
struct GenerationSettings {
  std::optional<bool> do_sample;
  std::optional<double> temperature, top_p;
  std::optional<int64_t> top_k;
};
// Of the file's text, "" for none. Error{data} that begins with `what` when it is damaged.
GenerationSettings parse_generation_settings(const std::string& text, const std::string& what);

// The same file with every id of `ends` among those that end a text, its other members as they are;
// "" stays "".
std::string with_ends(const std::string& text, std::span<const int32_t> ends,
                      const std::string& what);

}  // namespace rankine
