#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "template/template_value.h"

namespace rankine {

// The value with `origin` for every text in it, keys as well. Error{data} for integers beyond 64
// bits and for more than 200 containers within each other.
TemplateValue template_value(const nlohmann::ordered_json& json, uint32_t origin);
// The same of JSON text; of a key given twice the last value counts. Error{data} that begins with
// `place` for what is no JSON.
TemplateValue template_value(std::string_view json, uint32_t origin, const std::string& place);

}  // namespace rankine
