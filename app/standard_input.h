#pragma once
#include <string>

namespace rankine {

// All of it, to its end. Error{environment} when it cannot be read.
std::string standard_input();

}  // namespace rankine
