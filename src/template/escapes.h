#pragma once
#include <string_view>

#include "template/render_state.h"

namespace rankine {

// & < > ' " as HTML writes them.
MarkedText escaped(RenderState& state, const MarkedText& text);
// Bytes other than letters, digits, _.-~ and those of `kept` as %XX; a space as + if `plus`.
MarkedText url_quoted(RenderState& state, const MarkedText& text, std::string_view kept, bool plus);

}  // namespace rankine
