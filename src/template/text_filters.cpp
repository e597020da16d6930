#include <algorithm>
#include <iterator>

#include "template/escapes.h"
#include "template/filters.h"
#include "template/operators.h"
#include "template/printf_format.h"
#include "template/text_tools.h"
#include "template/text_units.h"
#include "template/value_text.h"

namespace rankine {
namespace {

MarkedText input_text(const FilterCall& call) {
  return text_of(call.state, call.input);
}

// For filters that use what only texts have.
const MarkedText& need_text(const FilterCall& call) {
  need_defined(call.state, call.input);
  if (!call.input.is(ValueKind::text))
    call.state.fail("'{}' needs a text, not a '{}'", call.name, type_name(call.input));
  return call.input.as_text();
}

TemplateValue change_case(const FilterCall& call) {
  call.given({});
  const MarkedText text = input_text(call);
  call.state.look(8 * text.size());
  if (call.name == "upper") return call.state.text(upper_case(text));
  if (call.name == "lower") return call.state.text(lower_case(text));
  if (call.name == "title") return call.state.text(words_capitalized(text));
  return call.state.text(capitalized(text));
}

TemplateValue trim(const FilterCall& call) {
  const Parameters given = call.given({"chars"});
  std::optional<std::string> from;
  if (given.has_some(0)) from = given.text(0).text();
  return call.state.text(stripped(input_text(call), from));
}

TemplateValue string(const FilterCall& call) {
  call.given({});
  return call.input.is(ValueKind::text) ? call.input : call.state.text(input_text(call));
}

TemplateValue safe(const FilterCall& call) {
  call.given({});
  return string(call).as_markup();
}

TemplateValue escape(const FilterCall& call) {
  call.given({});
  if (call.name != "forceescape" && call.input.is_markup()) return call.input;
  return call.state.text(escaped(call.state, input_text(call))).as_markup();
}

TemplateValue replace(const FilterCall& call) {
  const Parameters given = call.given({"old", "new", "count"}, 2);
  const MarkedText old_text = text_of(call.state, given.value(0));
  const MarkedText new_text = text_of(call.state, given.value(1));
  const int64_t most = given.has_some(2) ? given.integer(2, -1) : -1;
  return call.state.text(
      replaced(call.state, input_text(call),
               {.old_text = old_text.text(), .new_text = new_text, .most = most}));
}

TemplateValue center(const FilterCall& call) {
  const Parameters given = call.given({"width"});
  const MarkedText text = input_text(call);
  const int64_t width = given.integer(0, 80);
  const auto length = static_cast<int64_t>(character_count(text.view()));
  const auto missing = static_cast<size_t>(std::max<int64_t>(0, width - length));
  const size_t before = missing / 2 + (missing & static_cast<size_t>(width) & 1);
  return call.state.text(padded(call.state, text, {before, missing - before, MarkedText(" ")}));
}

TemplateValue format(const FilterCall& call) {
  if (!call.arguments.named.empty() && !call.arguments.positional.empty())
    call.state.fail("'format' takes positional or named arguments, not both");
  TemplateValue values;
  if (call.arguments.named.empty()) {
    values = call.state.list(call.arguments.positional, ListForm::tuple);
  } else {
    TemplateDict named;
    for (const auto& [name, value] : call.arguments.named) named.set(name, value);
    values = call.state.dict(std::move(named));
  }
  return call.state.text(printf_text(call.state, input_text(call), values));
}

TemplateValue indent(const FilterCall& call) {
  const Parameters given = call.given({"width", "first", "blank"});
  MarkedText indention(" ");
  if (given.has(0) && given.value(0).is(ValueKind::text))
    indention = given.value(0).as_text();
  else
    indention =
        padded(call.state, MarkedText(),
               {static_cast<size_t>(std::max<int64_t>(0, given.integer(0, 4))), 0, indention});
  MarkedText text = need_text(call);
  const TextSpan last = text.empty() ? TextSpan() : text.span_at(text.size() - 1);
  text.append("\n", last.origin, last.generated);
  const std::vector<MarkedText> lines = lines_of(text, false);
  const bool blank = given.truth(2, false);
  MarkedText out;
  if (given.truth(1, false)) out.append(indention);
  for (size_t i = 0; i < lines.size(); ++i) {
    call.state.make(lines[i].size() + indention.size());
    if (i > 0) {
      out.append("\n", last.origin, last.generated);
      if (blank || !lines[i].empty()) out.append(indention);
    }
    out.append(lines[i]);
  }
  return call.state.text(std::move(out));
}

TemplateValue truncate(const FilterCall& call) {
  const Parameters given = call.given({"length", "killwords", "end", "leeway"});
  if (!call.input.is(ValueKind::text) && length_of(call.state, call.input) <= given.integer(0, 255))
    return call.input;  // so Python does with a short list as well
  const MarkedText& text = need_text(call);
  const MarkedText end = given.has(2) ? given.text(2) : MarkedText("...");
  const int64_t length = given.integer(0, 255);
  const int64_t leeway = given.has_some(3) ? given.integer(3, 5) : 5;
  const auto end_length = static_cast<int64_t>(character_count(end.view()));
  if (length < end_length || leeway < 0)
    call.state.fail("'truncate' needs a length of at least its end's and a leeway of at least 0");
  const auto size = static_cast<int64_t>(character_count(text.view()));
  if (size - leeway <= length) return call.input;
  const size_t bytes = byte_of(text.view(), static_cast<size_t>(length - end_length));
  MarkedText out = text.slice(0, bytes);
  if (!given.truth(1, false)) {
    const size_t space = find_last(out.view(), " ", 0, out.size());
    if (space != std::string_view::npos) out = out.slice(0, space);
  }
  out.append(end);
  return call.state.text(std::move(out));
}

TemplateValue word_count(const FilterCall& call) {
  call.given({});
  const MarkedText text = input_text(call);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text.view(), at);
    const bool word = is_word(character.code);
    words += word && !inside ? 1 : 0;
    inside = word;
    at += character.bytes;
  }
  return TemplateValue::integer(words);
}

TemplateValue to_json(const FilterCall& call) {
  const Parameters given = call.given({"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = given.truth(0, false);
  style.sort_keys = given.truth(3, false);
  if (given.has_some(1)) {
    if (given.value(1).is(ValueKind::text)) {
      style.indent = given.text(1).text();
    } else {
      const int64_t width = given.integer(1, 0);
      call.state.make(static_cast<size_t>(std::max<int64_t>(0, width)));
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(0, width)), ' ');
    }
    style.between_items = ",";
  }
  if (given.has_some(2)) {
    const TemplateValue& both = given.value(2);
    if (!both.is(ValueKind::list) || both.as_list().items.size() != 2 ||
        !both.as_list().items[0].is(ValueKind::text) ||
        !both.as_list().items[1].is(ValueKind::text))
      call.state.fail("'separators' is two texts");
    style.between_items = both.as_list().items[0].as_text().text();
    style.behind_key = both.as_list().items[1].as_text().text();
  }
  return call.state.text(json_text(call.state, call.input, style));
}

TemplateValue url_encode(const FilterCall& call) {
  call.given({});
  if (call.input.is(ValueKind::text) || !is_iterable(call.input))
    return call.state.text(url_quoted(call.state, input_text(call), "/", false));
  std::vector<MarkedText> parts;
  const bool dict = call.input.is(ValueKind::dict);
  for (const TemplateValue& item : items_of(call.state, call.input)) {
    TemplateValue key = item, value;
    if (dict) {
      value = *call.input.as_dict().find(item);
    } else {
      if (!item.is(ValueKind::list) || item.as_list().items.size() != 2)
        call.state.fail("'urlencode' takes pairs");
      key = item.as_list().items[0];
      value = item.as_list().items[1];
    }
    MarkedText part = url_quoted(call.state, text_of(call.state, key), "", true);
    part.append("=", part.first_origin());
    part.append(url_quoted(call.state, text_of(call.state, value), "", true));
    parts.push_back(std::move(part));
  }
  return call.state.text(joined(call.state, parts, MarkedText("&", call.input.origin())));
}

TemplateValue xml_attributes(const FilterCall& call) {
  const Parameters given = call.given({"autospace"});
  if (!call.input.is(ValueKind::dict)) call.state.fail("'xmlattr' needs a dict");
  MarkedText out;
  for (const auto& [key, value] : call.input.as_dict().entries) {
    if (value.is(ValueKind::none) || value.is(ValueKind::undefined)) continue;
    const MarkedText name = text_of(call.state, key);
    if (name.text().find_first_of(" \t\n\v\f\r/>=") != std::string::npos)
      call.state.fail("'{}' cannot be the name of an attribute", name.text());
    const uint32_t origin = call.input.origin();
    if (!out.empty() || given.truth(0, true)) out.append(" ", origin);
    out.append(escaped(call.state, name));
    out.append("=\"", origin);
    out.append(escaped(call.state, text_of(call.state, value)));
    out.append("\"", origin);
  }
  return call.state.text(std::move(out));
}

constexpr FilterEntry filters[] = {{"capitalize", change_case},
                                   {"center", center},
                                   {"e", escape},
                                   {"escape", escape},
                                   {"forceescape", escape},
                                   {"format", format},
                                   {"indent", indent},
                                   {"lower", change_case},
                                   {"replace", replace},
                                   {"safe", safe},
                                   {"string", string},
                                   {"title", change_case},
                                   {"tojson", to_json},
                                   {"trim", trim},
                                   {"truncate", truncate},
                                   {"upper", change_case},
                                   {"urlencode", url_encode},
                                   {"wordcount", word_count},
                                   {"xmlattr", xml_attributes}};

}  // namespace

Filter text_filter(std::string_view name) {
  const auto* found = std::find_if(std::begin(filters), std::end(filters),
                                   [&](const FilterEntry& entry) { return entry.name == name; });
  return found == std::end(filters) ? nullptr : found->filter;
}

}  // namespace rankine
