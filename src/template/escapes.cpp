#include "template/escapes.h"

#include "template/text_units.h"

namespace rankine {
namespace {

// Each byte put through `change`, which gives "" for those that stay.
template <class Change>
MarkedText each_byte(RenderState& state, const MarkedText& text, Change&& change) {
  state.make(6 * text.size());
  MarkedText out;
  MarkedTextReader reader(text);
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string changed = change(text.text()[at]);
    const TextSpan span = reader.at(at);
    out.append(changed.empty() ? text.view().substr(at, 1) : changed, span.origin, span.generated);
  }
  return out;
}

}  // namespace

MarkedText escaped(RenderState& state, const MarkedText& text) {
  return each_byte(state, text, [](char sign) -> std::string {
    switch (sign) {
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '\'':
        return "&#39;";
      case '"':
        return "&#34;";
      default:
        return "";
    }
  });
}

MarkedText url_quoted(RenderState& state, const MarkedText& text, std::string_view kept,
                      bool plus) {
  return each_byte(state, text, [&](char sign) -> std::string {
    const auto byte = static_cast<uint8_t>(sign);
    if (plus && sign == ' ') return "+";
    const bool stays =
        byte < 0x80 && (is_letter(byte) || is_digit(byte) ||
                        std::string_view("_.-~").find(sign) != std::string_view::npos ||
                        kept.find(sign) != std::string_view::npos);
    return stays ? "" : fmt::format("%{:02X}", byte);
  });
}

}  // namespace rankine
