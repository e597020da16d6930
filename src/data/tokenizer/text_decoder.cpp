#include "data/tokenizer/text_decoder.h"

#include <charconv>

#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/unicode.h"

namespace rankine {

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int byte = -1;
  const auto [end, code] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return code == std::errc() && end == token.data() + 5 && byte >= 0 ? byte : -1;
}

TextDecoder::TextDecoder(const JsonPlace& place) {
  place.need(!place.value().is_null(), "without a decoder tokens do not say their text");
  read(place);
}

void TextDecoder::read(const JsonPlace& place) {
  JsonMembers members(place);
  const JsonPlace type = members.at("type");
  const std::string& name = type.text();
  place.need(!by_bytes_, "nothing may follow ByteLevel");
  place.need(!fused_ || name == "Strip" || name == "Fuse", "{} may not follow Fuse", name);
  if (name == "Sequence") {
    const JsonPlace list = members.at("decoders");
    for (size_t i = 0; i < list.array().size(); ++i) read(list.child(list.array()[i], i));
  } else if (name == "ByteLevel") {
    place.need(replacements_.empty() && !byte_tokens_ && dropped_from_first_.empty() &&
                   of_token_.most == 0,
               "ByteLevel stands alone");
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) members.skip(key);
    by_bytes_ = true;
  } else if (name == "Metaspace") {
    read_metaspace(members);
  } else if (name == "Replace") {
    place.need(!byte_tokens_ && of_token_.most == 0, "Replace comes before the other decoders");
    replacements_.emplace_back(string_pattern(members.at("pattern")), members.at("content").text());
  } else if (name == "ByteFallback") {
    place.need(of_token_.most == 0, "ByteFallback may not follow Strip");
    byte_tokens_ = true;
  } else if (name == "Fuse") {
    fused_ = true;
  } else if (name == "Strip") {
    read_strip(members);
  } else {
    type.refuse(
        "decoder '{}' is not understood; ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip "
        "and Sequence are",
        name);
  }
  members.finish();
}

void TextDecoder::read_metaspace(JsonMembers& members) {
  members.place().need(replacements_.empty() && !byte_tokens_ && of_token_.most == 0,
                       "Metaspace comes before the other decoders");
  const std::string mark = members.at("replacement").text();
  members.place().need(!mark.empty(), "replacement is empty");
  members.skip("str_rep");
  members.skip("split");
  const bool old_prefix = members.flag_or("add_prefix_space", true);
  const std::string scheme = members.text_or("prepend_scheme", old_prefix ? "always" : "never");
  if (scheme != "never") dropped_from_first_ = mark;
  replacements_.emplace_back(mark, " ");
}

void TextDecoder::read_strip(JsonMembers& members) {
  const JsonPlace content = members.at("content");
  content.need(!content.text().empty() && first_char(content.text()).bytes == content.text().size(),
               "must be one character, not '{}'", content.text());
  Strip& strip = fused_ ? of_text_ : of_token_;
  members.place().need(strip.most == 0, "a second Strip is not understood");
  strip = {content.text(), members.at("start").integer(0, INT32_MAX)};
  members.at("stop").need(members.at("stop").integer(0, INT32_MAX) == 0,
                          "taking characters off the end is not understood");
}

void TextDecoder::append(std::string_view token, State& state, std::string& out) const {
  const bool is_first = !std::exchange(state.began, true);
  if (by_bytes_) {
    out += token;
    return;
  }
  std::string buffers[2];
  std::string_view text = token;
  if (is_first && !dropped_from_first_.empty())
    text = replace_all(text, dropped_from_first_, "", buffers[0]);
  size_t into = 1;
  for (const auto& [pattern, content] : replacements_) {
    const std::string_view changed = replace_all(text, pattern, content, buffers[into]);
    if (changed.data() == buffers[into].data()) into = 1 - into;
    text = changed;
  }
  const int byte = byte_tokens_ ? byte_of_token(text) : -1;
  const char as_char = static_cast<char>(byte);
  if (byte >= 0) text = {&as_char, 1};
  for (int64_t i = 0; i < of_token_.most && text.starts_with(of_token_.content); ++i)
    text.remove_prefix(of_token_.content.size());
  while (state.stripping && state.stripped < of_text_.most && text.starts_with(of_text_.content)) {
    text.remove_prefix(of_text_.content.size());
    ++state.stripped;
  }
  if (!text.empty()) state.stripping = false;
  out += text;
}

}  // namespace rankine
