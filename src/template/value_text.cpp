#include "template/value_text.h"

#include <algorithm>
#include <cmath>

#include "template/numbers.h"
#include "template/operators.h"
#include "template/template_object.h"
#include "template/text_units.h"

namespace rankine {
namespace {

std::string scalar_text(const TemplateValue& value) {
  switch (value.kind()) {
    case ValueKind::none:
      return "None";
    case ValueKind::boolean:
      return value.as_boolean() ? "True" : "False";
    case ValueKind::integer:
      return std::to_string(value.as_integer());
    case ValueKind::real:
      return real_text(value.as_real());
    default:
      return "Undefined";
  }
}

// Python's escape of a character in repr(), or "" where it stands for itself.
std::string shown_escape(char32_t code, char quote) {
  const auto number = static_cast<uint32_t>(code);
  if (code == static_cast<char32_t>(quote) || code == '\\') return {'\\', static_cast<char>(code)};
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  if (code == ' ' || is_printable(code)) return "";
  return code < 0x100     ? fmt::format("\\x{:02x}", number)
         : code < 0x10000 ? fmt::format("\\u{:04x}", number)
                          : fmt::format("\\U{:08x}", number);
}

class Shower {
 public:
  Shower(RenderState& state, uint32_t origin) : state_(state), origin_(origin) {}

  void show(const TemplateValue& value) {
    const RenderState::Level level(state_);
    state_.step();
    switch (value.kind()) {
      case ValueKind::text:
        return show_text(value.as_text());
      case ValueKind::list:
        return show_list(value.as_list());
      case ValueKind::dict:
        return show_dict(value.as_dict());
      case ValueKind::object:
        return show_object(value.as_object());
      default:
        sign(scalar_text(value), value.origin());
    }
  }
  MarkedText take() { return std::move(out_); }

 private:
  void sign(std::string_view text, uint32_t origin = 0) {
    state_.make(text.size());
    out_.append(text, origin != 0 ? origin : origin_);
  }
  void show_text(const MarkedText& text) {
    const bool single =
        text.text().find('\'') == std::string::npos || text.text().find('"') != std::string::npos;
    const char quote = single ? '\'' : '"';
    sign({&quote, 1});
    state_.make(2 * text.size());
    append_escaped(
        text, [&](char32_t code) { return shown_escape(code, quote); }, out_);
    sign({&quote, 1});
  }
  void show_list(const TemplateList& list) {
    if (list.form == ListForm::range) {
      sign(fmt::format("range({}, {}", list.start, list.stop));
      return sign(list.step == 1 ? ")" : fmt::format(", {})", list.step));
    }
    const bool tuple = list.form == ListForm::tuple || list.form == ListForm::group;
    const bool view = !tuple && list.form != ListForm::list;
    if (view)
      sign(list.form == ListForm::keys     ? "dict_keys("
           : list.form == ListForm::values ? "dict_values("
                                           : "dict_items(");
    sign(tuple ? "(" : "[");
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) sign(", ");
      show(list.items[i]);
    }
    if (tuple && list.items.size() == 1) sign(",");
    sign(tuple ? ")" : "]");
    if (view) sign(")");
  }
  void show_dict(const TemplateDict& dict) {
    sign("{");
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      if (i > 0) sign(", ");
      show(dict.entries[i].first);
      sign(": ");
      show(dict.entries[i].second);
    }
    sign("}");
  }
  void show_object(TemplateObject& object) {
    if (object.kind == ObjectKind::space) {
      for (const auto& [key, value] : static_cast<NamespaceObject&>(object).attributes.entries)
        if (origin_ == 0) origin_ = value.origin();
      sign("<Namespace ");
      show_dict(static_cast<NamespaceObject&>(object).attributes);
      return sign(">");
    }
    const std::string name =
        object.kind == ObjectKind::macro ? static_cast<MacroObject&>(object).name : "";
    sign(fmt::format("<{}{}>", type_name_of(object), name));
  }
  static std::string type_name_of(const TemplateObject& object) {
    return object.kind == ObjectKind::macro    ? "Macro"
           : object.kind == ObjectKind::method ? "built-in method"
           : object.kind == ObjectKind::loop   ? "LoopContext"
                                               : "object";
  }

  RenderState& state_;
  uint32_t origin_;
  MarkedText out_;
};

}  // namespace

MarkedText shown(RenderState& state, const TemplateValue& value) {
  Shower shower(state, value.origin());
  shower.show(value);
  return shower.take();
}

MarkedText text_of(RenderState& state, const TemplateValue& value) {
  switch (value.kind()) {
    case ValueKind::undefined:
      return {};
    case ValueKind::text:
      state.make(value.as_text().size());
      return value.as_text();
    case ValueKind::list:
    case ValueKind::dict:
    case ValueKind::object:
      return shown(state, value);
    default:
      return MarkedText(scalar_text(value), value.origin());
  }
}

}  // namespace rankine
