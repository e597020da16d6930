#pragma once
#include "template/nodes.h"

// Which variable a name means is decided when the template is parsed, by Jinja's rules: a loop, a
// macro and most other blocks set variables of their own, an if block those around it; a name that
// is set in a scope is that scope's from its beginning on.
namespace rankine {

// Gives every name in the program its slot and every scope its plan, and checks the names of
// filters and tests. Error{data} with the program's place.
void place_variables(TemplateProgram& program);

}  // namespace rankine
