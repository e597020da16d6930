#include "data/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/unicode.h"

namespace rankine {
namespace {

using Kind = SplitStep::Kind;
using Prefix = SplitStep::Prefix;

size_t number_bytes(std::string_view text, size_t at, bool single) {
  const bool number = class_at(text, at).kind == CharClass::number;
  size_t end = at + class_at(text, at).bytes;
  while (end < text.size() && !(number && single)) {
    const ClassAt c = class_at(text, end);
    if ((c.kind == CharClass::number) != number) break;
    end += c.bytes;
  }
  return end - at;
}

size_t mark_bytes(const SplitStep& step, std::string_view text) {
  const std::string& mark = step.mark;
  if (step.kind == Kind::before_marks) {
    size_t from = 0;
    while (text.substr(from).starts_with(mark)) from += mark.size();
    return std::min(text.find(mark, from), text.size());
  }
  if (step.kind == Kind::before_mark)
    return std::min(text.find(mark, text.starts_with(mark) ? mark.size() : 1), text.size());
  const size_t found = text.find(mark);
  if (found == std::string_view::npos) return text.size();
  return found == 0 || step.kind == Kind::after_mark ? found + mark.size() : found;
}

}  // namespace

size_t PreTokenizer::other_piece_bytes(const SplitStep& step, std::string_view text, size_t at) {
  if (step.kind == Kind::digit_runs || step.kind == Kind::single_digits)
    return number_bytes(text, at, step.kind == Kind::single_digits);
  return mark_bytes(step, text.substr(at));
}

std::string PreTokenizer::prefixed(const SplitStep& step, std::string_view piece,
                                   PieceStart start) {
  if (step.kind == Kind::prefix_space)
    return piece.starts_with(' ') || start == PieceStart::within ? std::string(piece)
                                                                 : " " + std::string(piece);
  std::string buffer;
  const std::string_view marked = replace_all(piece, " ", step.mark, buffer);
  const bool wanted = (step.prefix == Prefix::always && start != PieceStart::within) ||
                      (step.prefix == Prefix::first && start == PieceStart::text);
  return (wanted && !marked.starts_with(step.mark) ? step.mark : "") + std::string(marked);
}

bool PreTokenizer::adds_text() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const SplitStep& step) { return step.kind >= Kind::prefix_space; });
}

bool PreTokenizer::marks_first_piece() const {
  return !steps_.empty() && std::any_of(steps_.begin() + 1, steps_.end(), [](const SplitStep& s) {
    return s.kind == Kind::metaspace && s.prefix == Prefix::first;
  });
}

bool PreTokenizer::cuts_before_lines() const {
  const auto by_characters = [](const SplitStep& step) {
    return step.kind == Kind::pattern || step.kind == Kind::digit_runs ||
           step.kind == Kind::single_digits;
  };
  return !steps_.empty() && steps_.front().kind == Kind::pattern &&
         std::all_of(steps_.begin(), steps_.end(), by_characters);
}

PreTokenizer::PreTokenizer(const JsonPlace& place) {
  if (!place.value().is_null()) read(place);
}

void PreTokenizer::read(const JsonPlace& place) {
  JsonMembers members(place);
  const JsonPlace type = members.at("type");
  place.need(!by_bytes_, "nothing may follow ByteLevel");
  if (type.text() == "Sequence") {
    const JsonPlace list = members.at("pretokenizers");
    for (size_t i = 0; i < list.array().size(); ++i) read(list.child(list.array()[i], i));
  } else if (type.text() == "ByteLevel") {
    read_byte_level(members);
  } else if (type.text() == "Split") {
    read_split(members);
  } else if (type.text() == "Digits") {
    const bool single = members.flag_or("individual_digits", false);
    add({.kind = single ? Kind::single_digits : Kind::digit_runs, .mark = ""});
  } else if (type.text() == "Metaspace") {
    read_metaspace(members);
  } else {
    type.refuse(
        "pre-tokenizer '{}' is not understood; ByteLevel, Split, Digits, Metaspace and Sequence "
        "are",
        type.text());
  }
  members.finish();
}

void PreTokenizer::read_byte_level(JsonMembers& members) {
  if (members.flag_or("add_prefix_space", true)) add({.kind = Kind::prefix_space, .mark = ""});
  if (members.flag_or("use_regex", true))
    add({.kind = Kind::pattern, .pattern = SplitPattern::gpt2, .mark = ""});
  members.skip("trim_offsets");
  by_bytes_ = true;
}

void PreTokenizer::read_split(JsonMembers& members) {
  const JsonPlace place = members.at("pattern"), behavior = members.at("behavior");
  const bool invert = members.flag_or("invert", false);
  if (place.value().is_object() && place.value().contains("Regex")) {
    JsonMembers pattern(place);
    const JsonPlace regex = pattern.at("Regex");
    pattern.finish();
    const auto known = find_pattern(regex.text());
    regex.need(known.has_value(),
               "this expression is not understood; those of GPT-2, Llama 3 and Qwen 2 are");
    // These expressions take every character, so nothing lies between matches to be removed.
    const bool all = behavior.text() == "Isolated" || (behavior.text() == "Removed" && invert);
    behavior.need(all, "'{}'{} is not understood here; Isolated is", behavior.text(),
                  invert ? " inverted" : "");
    return add({.kind = Kind::pattern, .pattern = *known, .mark = ""});
  }
  const std::string mark = string_pattern(place);
  behavior.need(!invert, "an inverted split at a string is not understood");
  for (const auto& [name, kind] : {std::pair{"Isolated", Kind::alone},
                                   {"MergedWithPrevious", Kind::after_mark},
                                   {"MergedWithNext", Kind::before_mark}})
    if (behavior.text() == name) return add({.kind = kind, .mark = mark});
  behavior.refuse("'{}' is not understood; Isolated, MergedWithPrevious and MergedWithNext are",
                  behavior.text());
}

void PreTokenizer::read_metaspace(JsonMembers& members) {
  const JsonPlace mark = members.at("replacement");
  mark.need(!mark.text().empty() && first_char(mark.text()).bytes == mark.text().size(),
            "must be one character, not '{}'", mark.text());
  members.skip("str_rep");
  const bool old_prefix = members.flag_or("add_prefix_space", true);
  const std::string scheme = members.text_or("prepend_scheme", old_prefix ? "always" : "never");
  members.place().need(old_prefix || scheme == "never",
                       "add_prefix_space false contradicts prepend_scheme '{}'", scheme);
  Prefix prefix = Prefix::never;
  if (scheme == "first" || scheme == "always")
    prefix = scheme == "first" ? Prefix::first : Prefix::always;
  else
    members.place().need(scheme == "never",
                         "prepend_scheme '{}' is not understood; never, first and always are",
                         scheme);
  add({.kind = Kind::metaspace, .mark = mark.text(), .prefix = prefix});
  if (members.flag_or("split", true)) add({.kind = Kind::before_mark, .mark = mark.text()});
}

}  // namespace rankine
