#pragma once
#include "template/arguments.h"

namespace rankine {

// format % values, where `values` is a tuple, a dict or one value.
MarkedText printf_text(RenderState& state, const MarkedText& format, const TemplateValue& values);
// str.format(): {} {0} {name.attribute[key]!r:spec}.
MarkedText formatted(RenderState& state, const MarkedText& format, const Arguments& arguments);

}  // namespace rankine
