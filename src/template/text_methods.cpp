#include <algorithm>
#include <array>

#include "template/attributes.h"
#include "template/operators.h"
#include "template/printf_format.h"
#include "template/text_tools.h"
#include "template/text_units.h"

namespace rankine {
namespace {

struct Call {
  RenderState& state;
  const MarkedText& text;
  std::string_view name;
  const Arguments& arguments;

  Parameters given(std::initializer_list<std::string_view> names, size_t required = 0) const {
    return Parameters(state, name, arguments, names, required);
  }
  TemplateValue made(MarkedText made) const { return state.text(std::move(made)); }
};

using Method = TemplateValue (*)(const Call&);

TemplateValue strip(const Call& call) {
  const Parameters given = call.given({"chars"});
  std::optional<std::string> from;
  if (given.has_some(0)) from = given.text(0).text();
  return call.made(
      stripped(call.text, from, {.begin = call.name != "rstrip", .end = call.name != "lstrip"}));
}

TemplateValue texts(const Call& call, std::vector<MarkedText> parts, ListForm form) {
  std::vector<TemplateValue> items;
  call.state.make_items(parts.size());
  for (MarkedText& part : parts) items.push_back(call.state.text(std::move(part)));
  return call.state.list(std::move(items), form, call.text.first_origin());
}

TemplateValue split_text(const Call& call) {
  const Parameters given = call.given({"sep", "maxsplit"});
  SplitAt at{.separator = {}, .most = given.integer(1, -1), .from_end = call.name == "rsplit"};
  if (given.has_some(0)) at.separator = given.text(0).text();
  if (at.separator && at.separator->empty()) call.state.fail("an empty separator");
  call.state.make(call.text.size());
  return texts(call, split(call.text, at), ListForm::list);
}

TemplateValue splitlines(const Call& call) {
  const Parameters given = call.given({"keepends"});
  call.state.make(call.text.size());
  return texts(call, lines_of(call.text, given.truth(0, false)), ListForm::list);
}

TemplateValue partition(const Call& call) {
  const Parameters given = call.given({"sep"}, 1);
  const std::string& separator = given.text(0).text();
  if (separator.empty()) call.state.fail("an empty separator");
  const bool from_end = call.name == "rpartition";
  const std::string_view view = call.text.view();
  const size_t found = from_end ? find_last(view, separator, 0, view.size())
                                : find_first(view, separator, 0, view.size());
  std::vector<MarkedText> parts(3);
  if (found == std::string_view::npos) {
    parts[from_end ? 2 : 0] = call.text;
  } else {
    parts[0] = call.text.slice(0, found);
    parts[1] = call.text.slice(found, separator.size());  // its own characters
    const size_t rest = found + separator.size();
    parts[2] = call.text.slice(rest, call.text.size() - rest);
  }
  return texts(call, std::move(parts), ListForm::tuple);
}

TemplateValue replace(const Call& call) {
  const Parameters given = call.given({"old", "new", "count"}, 2);
  return call.made(replaced(
      call.state, call.text,
      {.old_text = given.text(0).text(), .new_text = given.text(1), .most = given.integer(2, -1)}));
}

// The bytes of the part that start and end, in characters, leave; false beyond the text.
bool part_of(const Call& call, const Parameters& given, size_t& begin, size_t& end) {
  const std::string_view view = call.text.view();
  const auto length = static_cast<int64_t>(character_count(view));
  const auto placed = [&](size_t i, int64_t otherwise) {
    int64_t at = given.has_some(i) ? given.integer(i, otherwise) : otherwise;
    if (at < 0) at = std::max<int64_t>(0, at + length);
    return at;
  };
  const int64_t first = placed(1, 0), last = std::min(length, placed(2, length));
  if (first > last || first > length) return false;
  begin = byte_of(view, static_cast<size_t>(first));
  end = byte_of(view, static_cast<size_t>(last));
  return true;
}

TemplateValue has_end(const Call& call) {
  const bool at_begin = call.name == "startswith";
  const Parameters given = call.given({at_begin ? "prefix" : "suffix", "start", "end"}, 1);
  std::vector<const TemplateValue*> wanted{&given.value(0)};
  if (given.value(0).is(ValueKind::list) && given.value(0).as_list().form == ListForm::tuple) {
    wanted.clear();
    for (const TemplateValue& item : given.value(0).as_list().items) wanted.push_back(&item);
  }
  size_t begin = 0, end = call.text.size();
  const bool inside = (!given.has(1) && !given.has(2)) || part_of(call, given, begin, end);
  for (const TemplateValue* value : wanted) {
    need_defined(call.state, *value);
    if (!value->is(ValueKind::text))
      call.state.fail("'{}' needs a text or a tuple of texts, not a '{}'", call.name,
                      type_name(*value));
    const std::string_view part = call.text.view().substr(begin, end - begin);
    const std::string& text = value->as_text().text();
    if (inside && (at_begin ? part.starts_with(text) : part.ends_with(text)))
      return TemplateValue::boolean(true);
  }
  return TemplateValue::boolean(false);
}

TemplateValue find(const Call& call) {
  const Parameters given = call.given({"sub", "start", "end"}, 1);
  const std::string& wanted = given.text(0).text();
  size_t begin = 0, end = 0, found = std::string_view::npos;
  call.state.look(call.text.size());
  const bool from_end = call.name[0] == 'r';
  if (part_of(call, given, begin, end))
    found = from_end ? find_last(call.text.view(), wanted, begin, end)
                     : find_first(call.text.view(), wanted, begin, end);
  if (found != std::string_view::npos)
    return TemplateValue::integer(
        static_cast<int64_t>(character_count(call.text.view().substr(0, found))));
  if (call.name.ends_with("index")) call.state.fail("the text is not in the other");
  return TemplateValue::integer(-1);
}

TemplateValue count(const Call& call) {
  const Parameters given = call.given({"sub", "start", "end"}, 1);
  const std::string& wanted = given.text(0).text();
  size_t begin = 0, end = 0;
  call.state.look(call.text.size());
  if (!part_of(call, given, begin, end)) return TemplateValue::integer(0);
  if (wanted.empty())
    return TemplateValue::integer(
        static_cast<int64_t>(character_count(call.text.view().substr(begin, end - begin))) + 1);
  int64_t number = 0;
  while ((begin = find_first(call.text.view(), wanted, begin, end)) != std::string_view::npos) {
    ++number;
    begin += wanted.size();
  }
  return TemplateValue::integer(number);
}

TemplateValue change_case(const Call& call) {
  call.given({});
  call.state.look(8 * call.text.size());
  if (call.name == "upper") return call.made(upper_case(call.text));
  if (call.name == "lower") return call.made(lower_case(call.text));
  if (call.name == "title") return call.made(title_case(call.text));
  return call.made(capitalized(call.text));
}

TemplateValue join(const Call& call) {
  const Parameters given = call.given({"iterable"}, 1);
  std::vector<MarkedText> parts;
  for (const TemplateValue& item : items_of(call.state, given.value(0))) {
    if (!item.is(ValueKind::text))
      call.state.fail("'join' takes texts, not a '{}'", type_name(item));
    call.state.make(item.as_text().size());
    parts.push_back(item.as_text());
  }
  return call.made(joined(call.state, parts, call.text));
}

TemplateValue format(const Call& call) {
  return call.made(formatted(call.state, call.text, call.arguments));
}

TemplateValue is_all(const Call& call) {
  call.given({});
  call.state.look(8 * call.text.size());
  const std::string_view view = call.text.view();
  bool all = !view.empty(), upper = true, lower = true, cased = false;
  for (size_t at = 0; at < view.size();) {
    const Character character = character_at(view, at);
    const char32_t code = character.code;
    if (call.name == "isdigit" || call.name == "isdecimal") all = all && is_digit(code);
    if (call.name == "isnumeric") all = all && is_numeric(code);
    if (call.name == "isalpha") all = all && is_letter(code);
    if (call.name == "isalnum")
      all = all && (is_letter(code) || is_digit(code) || is_numeric(code));
    if (call.name == "isspace") all = all && is_space(code);
    upper = upper && !is_lower(code) && !is_titlecase(code);
    lower = lower && !is_upper(code) && !is_titlecase(code);
    cased = cased || is_upper(code) || is_lower(code) || is_titlecase(code);
    at += character.bytes;
  }
  if (call.name == "isupper") all = cased && upper;
  if (call.name == "islower") all = cased && lower;
  if (call.name == "isascii") all = is_ascii(view);
  return TemplateValue::boolean(all);
}

TemplateValue remove_end(const Call& call) {
  const bool at_begin = call.name == "removeprefix";
  const Parameters given = call.given({"part"}, 1);
  const std::string& part = given.text(0).text();
  const std::string_view view = call.text.view();
  if (part.empty() || !(at_begin ? view.starts_with(part) : view.ends_with(part)))
    return call.made(call.text);
  return call.made(call.text.slice(at_begin ? part.size() : 0, view.size() - part.size()));
}

TemplateValue pad(const Call& call) {
  const Parameters given = call.given({"width", "fillchar"}, 1);
  const int64_t width = given.integer(0, 0);
  const auto length = static_cast<int64_t>(character_count(call.text.view()));
  Padding padding{.before = 0, .after = 0, .sign = MarkedText(" ")};
  if (given.has(1)) {
    padding.sign = given.text(1);
    if (character_count(padding.sign.view()) != 1) call.state.fail("'fillchar' is one character");
  }
  const auto missing = static_cast<size_t>(std::max<int64_t>(0, width - length));
  if (call.name == "center")  // Python's way of an odd rest
    padding.before = missing / 2 + (missing & static_cast<size_t>(width) & 1);
  else if (call.name == "rjust")
    padding.before = missing;
  padding.after = missing - padding.before;
  return call.made(padded(call.state, call.text, padding));
}

TemplateValue zfill(const Call& call) {
  const Parameters given = call.given({"width"}, 1);
  const auto length = static_cast<int64_t>(character_count(call.text.view()));
  const auto missing = static_cast<size_t>(std::max<int64_t>(0, given.integer(0, 0) - length));
  const size_t sign =
      !call.text.empty() && (call.text.text()[0] == '-' || call.text.text()[0] == '+');
  MarkedText text = call.text.slice(0, sign);
  text.append(padded(call.state, call.text.slice(sign, call.text.size() - sign),
                     {missing, 0, MarkedText("0", call.text.first_origin())}));
  return call.made(std::move(text));
}

TemplateValue refuse(const Call& call) {
  call.state.fail("'{}' of a text is not offered to templates", call.name);
}

struct Entry {
  std::string_view name;
  Method method;
};

constexpr std::array<Entry, 47> methods = {{{"capitalize", change_case},
                                            {"casefold", refuse},
                                            {"center", pad},
                                            {"count", count},
                                            {"encode", refuse},
                                            {"endswith", has_end},
                                            {"expandtabs", refuse},
                                            {"find", find},
                                            {"format", format},
                                            {"format_map", refuse},
                                            {"index", find},
                                            {"isalnum", is_all},
                                            {"isalpha", is_all},
                                            {"isascii", is_all},
                                            {"isdecimal", is_all},
                                            {"isdigit", is_all},
                                            {"isidentifier", refuse},
                                            {"islower", is_all},
                                            {"isnumeric", is_all},
                                            {"isprintable", refuse},
                                            {"isspace", is_all},
                                            {"istitle", refuse},
                                            {"isupper", is_all},
                                            {"join", join},
                                            {"ljust", pad},
                                            {"lower", change_case},
                                            {"lstrip", strip},
                                            {"maketrans", refuse},
                                            {"partition", partition},
                                            {"removeprefix", remove_end},
                                            {"removesuffix", remove_end},
                                            {"replace", replace},
                                            {"rfind", find},
                                            {"rindex", find},
                                            {"rjust", pad},
                                            {"rpartition", partition},
                                            {"rsplit", split_text},
                                            {"rstrip", strip},
                                            {"split", split_text},
                                            {"splitlines", splitlines},
                                            {"startswith", has_end},
                                            {"strip", strip},
                                            {"swapcase", refuse},
                                            {"title", change_case},
                                            {"translate", refuse},
                                            {"upper", change_case},
                                            {"zfill", zfill}}};

const Entry* method_of(std::string_view name) {
  const auto* found =
      std::lower_bound(methods.begin(), methods.end(), name,
                       [](const Entry& e, std::string_view n) { return e.name < n; });
  return found != methods.end() && found->name == name ? found : nullptr;
}

}  // namespace

bool is_text_method(std::string_view name) {
  return method_of(name) != nullptr;
}

TemplateValue call_text_method(RenderState& state, const MarkedText& text, std::string_view name,
                               const Arguments& arguments) {
  state.look(text.size());
  return method_of(name)->method({state, text, name, arguments});
}

}  // namespace rankine
