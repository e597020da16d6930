#include "library/text_bounds.h"

#include <algorithm>

namespace rankine {
namespace {

std::string token_list(std::span<const int32_t> ids, const TextTokenizer* tokenizer) {
  std::string out;
  for (const int32_t id : ids) {
    out += out.empty() ? "" : ", ";
    const bool known = tokenizer != nullptr && tokenizer->bpe().is_token(id);
    out += known ? fmt::format("'{}' ({})", tokenizer->bpe().spelled(id), id)
                 : fmt::format("token {}", id);
  }
  return out;
}

}  // namespace

TextBounds text_bounds(const BoundSources& s) {
  TextBounds out;
  std::vector<int64_t> ends{s.config.eos};
  ends.insert(ends.end(), s.config.more_eos.begin(), s.config.more_eos.end());
  ends.insert(ends.end(), s.generation_ends.begin(), s.generation_ends.end());
  if (s.tokenizer != nullptr) {
    const SpecialIds& special = s.tokenizer->bpe().special();
    out.begin = s.tokenizer->bpe().begins();
    out.document_end = special.end;
    ends.push_back(special.end);
  }
  ends.push_back(s.reply_end);
  for (const int64_t id : ends)
    if (id >= 0 && id < s.config.vocabulary && std::ranges::find(out.ends, id) == out.ends.end())
      out.ends.push_back(static_cast<int32_t>(id));
  if (out.document_end < 0 && !out.ends.empty()) out.document_end = out.ends.front();
  return out;
}

std::string to_string(const TextBounds& bounds, const TextTokenizer* tokenizer) {
  std::string out = bounds.begin.empty() ? "begins with no token of its own"
                                         : "begins with " + token_list(bounds.begin, tokenizer);
  if (bounds.document_end >= 0)
    out += ", documents end with " + token_list(std::span(&bounds.document_end, 1), tokenizer);
  out += bounds.ends.empty() ? ", generation ends at the limit of tokens alone"
                             : ", generation ends at " + token_list(bounds.ends, tokenizer);
  return out;
}

void add_ends(ModelConfig& config, std::span<const int32_t> ends) {
  for (const int32_t end : ends) {
    if (end < 0 || end == config.eos ||
        std::ranges::find(config.more_eos, end) != config.more_eos.end())
      continue;
    if (config.eos < 0)
      config.eos = end;
    else
      config.more_eos.push_back(end);
  }
}

}  // namespace rankine
