#include <algorithm>
#include <cmath>

#include "template/numbers.h"
#include "template/operators.h"
#include "template/text_units.h"
#include "template/value_text.h"

namespace rankine {
namespace {

std::string real_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return real_text(value);
}

std::string escape(char32_t code, bool ascii) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\f':
      return "\\f";
    case '\b':
      return "\\b";
    default:
      break;
  }
  const auto number = static_cast<uint32_t>(code);
  if (code >= 0x20 && (code < 0x7F || (!ascii && code >= 0x7F))) return "";
  if (code < 0x10000) return code == 0x7F ? "" : fmt::format("\\u{:04x}", number);
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((number - 0x10000) >> 10),
                     0xDC00 + ((number - 0x10000) & 0x3FF));
}

class JsonWriter {
 public:
  JsonWriter(RenderState& state, const JsonStyle& style, uint32_t origin)
      : state_(state), style_(style), origin_(origin) {}

  void write(const TemplateValue& value) {
    const RenderState::Level level(state_);
    state_.step();
    switch (value.kind()) {
      case ValueKind::none:
        return sign("null", value.origin());
      case ValueKind::boolean:
        return sign(value.as_boolean() ? "true" : "false", value.origin());
      case ValueKind::integer:
        return sign(std::to_string(value.as_integer()), value.origin());
      case ValueKind::real:
        return sign(real_json(value.as_real()), value.origin());
      case ValueKind::text:
        return write_text(value.as_text());
      case ValueKind::dict:
        return write_dict(value.as_dict());
      case ValueKind::list: {
        const ListForm form = value.as_list().form;
        if (form == ListForm::list || form == ListForm::tuple || form == ListForm::group)
          return write_list(value.as_list());
        break;
      }
      default:
        break;
    }
    state_.fail("JSON cannot hold a value of type '{}'", type_name(value));
  }
  MarkedText take() { return std::move(out_); }

 private:
  void sign(std::string_view text, uint32_t origin = 0) {
    state_.make(text.size());
    out_.append(text, origin != 0 ? origin : origin_);
  }
  void line() {
    if (!style_.indent) return;
    sign("\n");
    for (size_t i = 0; i < level_; ++i) sign(*style_.indent);
  }
  void write_text(const MarkedText& text) {
    state_.make(2 * text.size());
    sign("\"");
    append_escaped(
        text, [&](char32_t code) { return escape(code, style_.ascii); }, out_);
    sign("\"");
  }
  void write_list(const TemplateList& list) {
    if (list.items.empty()) return sign("[]");
    sign("[");
    ++level_;
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) sign(style_.between_items);
      line();
      write(list.items[i]);
    }
    --level_;
    line();
    sign("]");
  }
  void write_key(const TemplateValue& key) {
    if (key.is(ValueKind::text)) return write_text(key.as_text());
    sign("\"");
    write(key);
    sign("\"");
  }
  void write_dict(const TemplateDict& dict) {
    if (dict.entries.empty()) return sign("{}");
    std::vector<const TemplateDict::Entry*> entries;
    for (const TemplateDict::Entry& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys)
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        return less(state_, a->first, b->first);
      });
    sign("{");
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) sign(style_.between_items);
      line();
      write_key(entries[i]->first);
      sign(style_.behind_key);
      write(entries[i]->second);
    }
    --level_;
    line();
    sign("}");
  }

  RenderState& state_;
  const JsonStyle& style_;
  uint32_t origin_;
  size_t level_ = 0;
  MarkedText out_;
};

}  // namespace

MarkedText json_text(RenderState& state, const TemplateValue& value, const JsonStyle& style) {
  JsonWriter writer(state, style, value.origin());
  writer.write(value);
  return writer.take();
}

}  // namespace rankine
