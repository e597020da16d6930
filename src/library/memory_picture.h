#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/engine.h"

namespace rankine {

// For people: the device's memory over one step, an area of one letter per kind of what comes and
// goes above what stays, and what the highest point is made of.
std::string memory_picture(const Engine& engine);
// The same as data: bytes by category, and at each action of the step program.
nlohmann::ordered_json memory_over_step(const Engine& engine);

}  // namespace rankine
