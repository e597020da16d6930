#include "template/template_json.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t deepest = 200;

TemplateValue value_at(const Json& json, uint32_t origin, size_t depth) {
  require(depth <= deepest, ErrorKind::data, "more than {} lists and objects within each other",
          deepest);
  switch (json.type()) {
    case Json::value_t::null:
      return TemplateValue::none(origin);
    case Json::value_t::boolean:
      return TemplateValue::boolean(json.get<bool>(), origin);
    case Json::value_t::number_float:
      return TemplateValue::real(json.get<double>(), origin);
    case Json::value_t::number_unsigned:
      require(json.get<uint64_t>() <= std::numeric_limits<int64_t>::max(), ErrorKind::data,
              "the integer {} does not fit into 64 bits", json.get<uint64_t>());
      [[fallthrough]];
    case Json::value_t::number_integer:
      return TemplateValue::integer(json.get<int64_t>(), origin);
    case Json::value_t::string:
      return TemplateValue::text(json.get_ref<const std::string&>(), origin);
    case Json::value_t::array: {
      std::vector<TemplateValue> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(value_at(item, origin, depth + 1));
      return TemplateValue::list(std::move(items), origin);
    }
    case Json::value_t::object: {
      TemplateDict dict;
      for (const auto& [key, item] : json.items())
        dict.set(key, value_at(item, origin, depth + 1), origin);
      return TemplateValue::dict(std::move(dict), origin);
    }
    default:
      fail(ErrorKind::data, "a template cannot take a JSON value of type {}", json.type_name());
  }
}

}  // namespace

TemplateValue template_value(const Json& json, uint32_t origin) {
  return value_at(json, origin, 0);
}

TemplateValue template_value(std::string_view json, uint32_t origin, const std::string& place) {
  Json parsed;
  try {
    parsed = Json::parse(json);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "{}: no JSON: {}", place, error.what());
  }
  try {
    return template_value(parsed, origin);
  } catch (const Error& error) {
    fail(ErrorKind::data, "{}: {}", place, error.what());
  }
}

}  // namespace rankine
