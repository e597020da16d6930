#pragma once
#include <optional>

#include "template/render_state.h"

// Values as text. Signs that stand for the structure of a list or a dict have the origin of the
// value, so that they are not the template's where a person wrote what is in it.
namespace rankine {

// str(value); '' for what is undefined.
MarkedText text_of(RenderState& state, const TemplateValue& value);
// repr(value)
MarkedText shown(RenderState& state, const TemplateValue& value);

struct JsonStyle {
  std::optional<std::string> indent;  // of one level; with it each item has a line
  std::string between_items = ", ", behind_key = ": ";
  bool sort_keys = false;
  bool ascii = false;
};
// json.dumps(value); fails for what JSON cannot hold.
MarkedText json_text(RenderState& state, const TemplateValue& value, const JsonStyle& style);

}  // namespace rankine
