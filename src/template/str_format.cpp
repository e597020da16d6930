#include <cmath>

#include "template/attributes.h"
#include "template/number_format.h"
#include "template/operators.h"
#include "template/printf_format.h"
#include "template/text_units.h"
#include "template/value_text.h"

namespace rankine {
namespace {

constexpr int64_t widest = 1 << 30;

class Formatter {
 public:
  Formatter(RenderState& state, const Arguments& arguments)
      : state_(state), arguments_(arguments) {}

  MarkedText run(const MarkedText& format, int depth) {
    if (depth > 2) state_.fail("a format within a format within a format");
    MarkedText out;
    MarkedTextReader reader(format);
    const std::string_view text = format.view();
    for (size_t at = 0; at < text.size();) {
      const size_t sign = std::min(text.find_first_of("{}", at), text.size());
      reader.copy(at, sign, out);
      if (sign == text.size()) break;
      if (text.substr(sign, 2) == "{{" || text.substr(sign, 2) == "}}") {
        reader.copy(sign, sign + 1, out);
        at = sign + 2;
        continue;
      }
      if (text[sign] == '}') state_.fail("a single '}}' in a format");
      const size_t end = closing(text, sign);
      field(format.slice(sign + 1, end - sign - 1), reader.at(sign).origin, depth, out);
      at = end + 1;
    }
    return out;
  }

 private:
  size_t closing(std::string_view text, size_t open) const {
    size_t depth = 0;
    for (size_t at = open; at < text.size(); ++at) {
      if (text[at] == '{') ++depth;
      if (text[at] == '}' && --depth == 0) return at;
    }
    state_.fail("a format with '{{' but no '}}'");
  }
  void field(const MarkedText& field, uint32_t origin, int depth, MarkedText& out);
  TemplateValue value_of(std::string_view name);
  TemplateValue first_of(const std::string& name);
  FieldFormat specification(std::string_view text) const;
  MarkedText put(const TemplateValue& value, const std::string& specification, uint32_t origin);

  RenderState& state_;
  const Arguments& arguments_;
  size_t next_ = 0;
};

void Formatter::field(const MarkedText& field, uint32_t origin, int depth, MarkedText& out) {
  const std::string_view text = field.view();
  size_t end = 0;  // of the name: its brackets may hold any sign
  for (bool bracket = false;
       end < text.size() && (bracket || (text[end] != '!' && text[end] != ':')); ++end)
    bracket = text[end] == '[' || (bracket && text[end] != ']');
  TemplateValue value = value_of(text.substr(0, end));
  if (text.substr(end, 1) == "!") {
    const char conversion = end + 1 < text.size() ? text[end + 1] : '\0';
    if (conversion != 's' && conversion != 'r' && conversion != 'a')
      state_.fail("a format's conversion is one of !s, !r and !a");
    value = state_.text(conversion == 's' ? text_of(state_, value) : shown(state_, value));
    end += 2;
    if (end < text.size() && text[end] != ':') state_.fail("':' is expected behind a conversion");
  }
  MarkedText specification;
  if (end < text.size()) specification = field.slice(end + 1, text.size() - end - 1);
  if (specification.text().find('{') != std::string::npos)
    specification = run(specification, depth + 1);
  out.append(put(value, specification.text(), origin));
}

TemplateValue Formatter::first_of(const std::string& name) {
  size_t index = next_;
  if (name.empty()) {
    ++next_;
  } else if (name.find_first_not_of("0123456789") == std::string::npos) {
    if (name.size() > 6) state_.fail("a format's argument {} is not given", name);
    index = std::stoul(name);
  } else {
    for (const auto& [key, value] : arguments_.named)
      if (key == name) return value;
    state_.fail("the format's name '{}' is not given", name);
  }
  if (index >= arguments_.positional.size())
    state_.fail("the format asks for argument {}, {} are given", index + 1,
                arguments_.positional.size());
  return arguments_.positional[index];
}

TemplateValue Formatter::value_of(std::string_view name) {
  size_t at = std::min(name.find_first_of(".["), name.size());
  TemplateValue value = first_of(std::string(name.substr(0, at)));
  while (at < name.size()) {
    state_.step();
    if (name[at] == '.') {
      const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
      value = attribute_of(state_, value, std::string(name.substr(at + 1, end - at - 1)));
      at = end;
    } else {
      const size_t end = name.find(']', at);
      if (name[at] != '[' || end == std::string_view::npos)
        state_.fail("a format's name with a bad '['");
      const std::string key(name.substr(at + 1, end - at - 1));
      const bool index = !key.empty() && key.size() < 10 &&
                         key.find_first_not_of("0123456789") == std::string::npos;
      value = item_of(state_, value,
                      index ? TemplateValue::integer(std::stol(key)) : TemplateValue::text(key));
      at = end + 1;
    }
  }
  return value;
}

FieldFormat Formatter::specification(std::string_view text) const {
  FieldFormat format;
  size_t at = 0;
  const auto sign = [&] { return at < text.size() ? text[at] : '\0'; };
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const auto number = [&] {
    int64_t value = 0;
    for (; sign() >= '0' && sign() <= '9'; ++at)
      value = std::min(widest, value * 10 + (sign() - '0'));
    return value;
  };
  const size_t first = text.empty() ? 0 : character_at(text, 0).bytes;
  if (first > 0 && first < text.size() && is_align(text[first])) {
    format.fill = std::string(text.substr(0, first));
    format.align = text[first];
    at = first + 1;
  } else if (is_align(sign())) {
    format.align = text[at++];
  }
  if (sign() == '+' || sign() == '-' || sign() == ' ') format.sign = text[at++];
  if (sign() == '#') format.alternative = text[at++] == '#';
  if (sign() == '0') {
    ++at;
    format.zero = true;
    if (format.align == '\0') {
      format.fill = "0";
      format.align = '=';
    }
  }
  format.width = number();
  if (sign() == ',' || sign() == '_') format.group = text[at++];
  if (sign() == '.') {
    ++at;
    if (sign() < '0' || sign() > '9') state_.fail("a format without its precision");
    format.precision = number();
  }
  if (at < text.size()) format.type = text[at++];
  if (at < text.size()) state_.fail("'{}' is no format", text);
  return format;
}

MarkedText Formatter::put(const TemplateValue& value, const std::string& specification,
                          uint32_t origin) {
  if (specification.empty()) return text_of(state_, value);
  const uint32_t from = value.origin() != 0 ? value.origin() : origin;
  FieldFormat format = this->specification(specification);
  if (value.is(ValueKind::integer) || value.is(ValueKind::real) ||
      (value.is(ValueKind::boolean) && format.type != '\0' && format.type != 's')) {
    if (format.type == 's') state_.fail("'s' formats no number");
    const std::string digits = value.is_integral()
                                   ? integer_field(state_, value.as_integer(), format)
                                   : real_field(state_, value.as_real(), format);
    if (format.align == '\0') format.align = '>';
    return padded_field(state_, MarkedText(digits, from), format, from);
  }
  if (!value.is(ValueKind::text) && !value.is(ValueKind::boolean))
    state_.fail("a '{}' takes no format", type_name(value));
  if ((format.type != '\0' && format.type != 's') || format.align == '=' || format.group != '\0' ||
      format.sign != '-')
    state_.fail("'{}' formats no text", specification);
  MarkedText text = text_of(state_, value);
  if (format.precision >= 0) {
    size_t bytes = 0;
    for (int64_t i = 0; i < format.precision && bytes < text.size(); ++i)
      bytes += character_at(text.view(), bytes).bytes;
    text = text.slice(0, bytes);
  }
  if (format.align == '\0') format.align = '<';
  return padded_field(state_, std::move(text), format, from);
}

}  // namespace

MarkedText formatted(RenderState& state, const MarkedText& format, const Arguments& arguments) {
  state.make(format.size());
  return Formatter(state, arguments).run(format, 0);
}

}  // namespace rankine
