#pragma once
#include "checkpoint/json.h"

namespace rankine {

// Error{data} when a config.json has a key, from whichever family, that asks for mathematics this
// program does not do. Keys at their neutral values pass.
void refuse_foreign_keys(const JsonObject& config);

}  // namespace rankine
