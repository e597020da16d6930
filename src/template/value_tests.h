#pragma once
#include "template/arguments.h"

namespace rankine {

bool is_value_test(std::string_view name);
// value is name(arguments); fails for an unknown name.
bool apply_test(RenderState& state, std::string_view name, const TemplateValue& value,
                const Arguments& arguments);

}  // namespace rankine
