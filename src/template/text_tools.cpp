#include "template/text_tools.h"

#include <algorithm>
#include <cstring>

#include "template/text_units.h"

namespace rankine {
namespace {

class StripSet {
 public:
  explicit StripSet(const std::optional<std::string>& characters) : any_space_(!characters) {
    if (!characters) return;
    for (size_t at = 0; at < characters->size();) {
      const Character character = character_at(*characters, at);
      codes_.push_back(character.code);
      at += character.bytes;
    }
    std::sort(codes_.begin(), codes_.end());
  }
  bool has(char32_t code) const {
    return any_space_ ? is_space(code) : std::binary_search(codes_.begin(), codes_.end(), code);
  }

 private:
  bool any_space_;
  std::vector<char32_t> codes_;
};

struct Piece {
  size_t begin, end;
};

std::vector<MarkedText> cut(const MarkedText& text, const std::vector<Piece>& pieces) {
  std::vector<MarkedText> parts;
  parts.reserve(pieces.size());
  MarkedTextReader reader(text);
  for (const Piece& piece : pieces) {
    parts.emplace_back();
    reader.copy(piece.begin, piece.end, parts.back());
  }
  return parts;
}

size_t past_space(std::string_view text, size_t at) {
  while (at < text.size() && is_space(character_at(text, at).code))
    at += character_at(text, at).bytes;
  return at;
}

size_t past_word(std::string_view text, size_t at) {
  while (at < text.size() && !is_space(character_at(text, at).code))
    at += character_at(text, at).bytes;
  return at;
}

size_t before_space(std::string_view text, size_t at) {
  while (at > 0 && is_space(character_at(text, character_before(text, at)).code))
    at = character_before(text, at);
  return at;
}

size_t before_word(std::string_view text, size_t at) {
  while (at > 0 && !is_space(character_at(text, character_before(text, at)).code))
    at = character_before(text, at);
  return at;
}

std::vector<Piece> words(std::string_view text, int64_t most) {
  std::vector<Piece> pieces;
  for (size_t at = past_space(text, 0); at < text.size();) {
    if (most >= 0 && static_cast<int64_t>(pieces.size()) == most) {
      pieces.push_back({at, text.size()});
      break;
    }
    const size_t end = past_word(text, at);
    pieces.push_back({at, end});
    at = past_space(text, end);
  }
  return pieces;
}

std::vector<Piece> words_from_end(std::string_view text, int64_t most) {
  std::vector<Piece> pieces;
  for (size_t at = before_space(text, text.size()); at > 0;) {
    if (most >= 0 && static_cast<int64_t>(pieces.size()) == most) {
      pieces.push_back({0, at});
      break;
    }
    const size_t begin = before_word(text, at);
    pieces.push_back({begin, at});
    at = before_space(text, begin);
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<Piece> parts(std::string_view text, std::string_view separator, int64_t most) {
  std::vector<Piece> pieces;
  size_t at = 0;
  while (most < 0 || static_cast<int64_t>(pieces.size()) < most) {
    const size_t end = find_first(text, separator, at, text.size());
    if (end == std::string_view::npos) break;
    pieces.push_back({at, end});
    at = end + separator.size();
  }
  pieces.push_back({at, text.size()});
  return pieces;
}

std::vector<Piece> parts_from_end(std::string_view text, std::string_view separator, int64_t most) {
  const std::string turned(text.rbegin(), text.rend());
  const std::string turned_separator(separator.rbegin(), separator.rend());
  std::vector<Piece> pieces = parts(turned, turned_separator, most);
  for (Piece& piece : pieces) piece = {text.size() - piece.end, text.size() - piece.begin};
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

// Each character put through `change(to, at, code)`.
template <class Change>
MarkedText changed(const MarkedText& text, Change&& change) {
  MarkedText out;
  out.reserve(text.size());
  MarkedTextReader reader(text);
  std::string to;
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text.view(), at);
    to.clear();
    change(to, at, character.code);
    const TextSpan span = reader.at(at);
    out.append(to, span.origin, span.generated);
    at += character.bytes;
  }
  return out;
}

}  // namespace

MarkedText stripped(const MarkedText& text, const std::optional<std::string>& from,
                    StripSides sides) {
  const StripSet set(from);
  size_t begin = 0, end = text.size();
  while (sides.begin && begin < end && set.has(character_at(text.view(), begin).code))
    begin += character_at(text.view(), begin).bytes;
  while (sides.end && end > begin) {
    const size_t before = character_before(text.view(), end);
    if (!set.has(character_at(text.view(), before).code)) break;
    end = before;
  }
  return text.slice(begin, std::max(begin, end) - begin);
}

std::vector<MarkedText> split(const MarkedText& text, const SplitAt& at) {
  if (at.separator)
    return cut(text, at.from_end ? parts_from_end(text.view(), *at.separator, at.most)
                                 : parts(text.view(), *at.separator, at.most));
  return cut(text,
             at.from_end ? words_from_end(text.view(), at.most) : words(text.view(), at.most));
}

std::vector<MarkedText> lines_of(const MarkedText& text, bool keep_ends) {
  std::vector<Piece> pieces;
  const std::string_view view = text.view();
  for (size_t begin = 0; begin < view.size();) {
    size_t end = begin;
    while (end < view.size() && !is_line_end(character_at(view, end).code))
      end += character_at(view, end).bytes;
    size_t next = end;
    if (end < view.size())
      next += view.substr(end, 2) == "\r\n" ? 2 : character_at(view, end).bytes;
    pieces.push_back({begin, keep_ends ? next : end});
    begin = next;
  }
  return cut(text, pieces);
}

MarkedText replaced(RenderState& state, const MarkedText& text, const Replacement& replacement) {
  MarkedText out;
  MarkedTextReader reader(text);
  const std::string& wanted = replacement.old_text;
  size_t at = 0, copied = 0;
  for (int64_t count = 0; replacement.most < 0 || count < replacement.most; ++count) {
    const size_t found = find_first(text.view(), wanted, at, text.size());
    if (found == std::string_view::npos) break;
    reader.copy(copied, found, out);
    state.make(replacement.new_text.size());
    state.step();
    out.append(replacement.new_text);
    copied = found + wanted.size();
    at = copied;
    if (wanted.empty()) {  // between all characters, and at both ends
      if (found == text.size()) break;
      at += character_at(text.view(), found).bytes;
    }
  }
  reader.copy(copied, text.size(), out);
  return out;
}

MarkedText upper_case(const MarkedText& text) {
  return changed(text, [](std::string& to, size_t, char32_t code) { append_upper(to, code); });
}

MarkedText lower_case(const MarkedText& text) {
  return changed(text,
                 [&](std::string& to, size_t at, char32_t) { append_lower(to, text.view(), at); });
}

MarkedText capitalized(const MarkedText& text) {
  return changed(text, [&](std::string& to, size_t at, char32_t code) {
    if (at == 0)
      append_title(to, code);
    else
      append_lower(to, text.view(), at);
  });
}

MarkedText title_case(const MarkedText& text) {
  bool in_word = false;
  return changed(text, [&](std::string& to, size_t at, char32_t code) {
    if (in_word)
      append_lower(to, text.view(), at);
    else
      append_title(to, code);
    in_word = is_upper(code) || is_lower(code) || is_titlecase(code);
  });
}

MarkedText words_capitalized(const MarkedText& text) {
  bool first = true;
  size_t rest = 0;  // of the word behind its first character, which is made small for itself
  return changed(text, [&](std::string& to, size_t at, char32_t code) {
    const bool between =
        code == '-' || is_space(code) || code == '(' || code == '{' || code == '[' || code == '<';
    if (first && !between) {
      append_upper(to, code);
      rest = at + character_at(text.view(), at).bytes;
    } else {
      append_lower(to, text.view().substr(rest), at - rest);
    }
    first = between;
  });
}

MarkedText padded(RenderState& state, const MarkedText& text, const Padding& padding) {
  state.make_items(0);
  if (padding.before > state.limits().memory_bytes || padding.after > state.limits().memory_bytes)
    state.make(state.limits().memory_bytes);
  state.make((padding.before + padding.after) * padding.sign.size() + text.size());
  MarkedText out;
  for (size_t i = 0; i < padding.before; ++i) out.append(padding.sign);
  out.append(text);
  for (size_t i = 0; i < padding.after; ++i) out.append(padding.sign);
  return out;
}

MarkedText joined(RenderState& state, const std::vector<MarkedText>& parts,
                  const MarkedText& between) {
  MarkedText out;
  for (size_t i = 0; i < parts.size(); ++i) {
    state.make(between.size() + parts[i].size());
    if (i > 0) out.append(between);
    out.append(parts[i]);
  }
  return out;
}

MarkedText backwards(const MarkedText& text) {
  MarkedText out;
  size_t end = text.size();
  for (auto span = text.spans().rbegin(); span != text.spans().rend(); ++span) {
    for (size_t left = span->bytes; left > 0;) {
      const size_t begin = character_before(text.view(), end);
      const size_t bytes = std::min(left, end - begin);
      out.append(text.view().substr(end - bytes, bytes), span->origin, span->generated);
      end -= bytes;
      left -= bytes;
    }
  }
  return out;
}

size_t find_first(std::string_view text, std::string_view wanted, size_t begin, size_t end) {
  if (begin > end || wanted.size() > end - begin) return std::string_view::npos;
  if (wanted.empty()) return begin;
  const void* found = ::memmem(text.data() + begin, end - begin, wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t find_last(std::string_view text, std::string_view wanted, size_t begin, size_t end) {
  if (begin > end || wanted.size() > end - begin) return std::string_view::npos;
  const std::string_view part = text.substr(begin, end - begin);
  const std::string turned(part.rbegin(), part.rend());  // memmem's time is linear, rfind's is not
  const std::string turned_wanted(wanted.rbegin(), wanted.rend());
  const size_t found = find_first(turned, turned_wanted, 0, turned.size());
  return found == std::string_view::npos ? found : end - found - wanted.size();
}

size_t byte_of(std::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += character_at(text, at).bytes;
  return at;
}

}  // namespace rankine
