#include "checkpoint/generation_settings.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/json.h"

namespace rankine {

using nlohmann::ordered_json;

GenerationSettings parse_generation_settings(const std::string& text, const std::string& what) {
  GenerationSettings out;
  if (text.empty()) return out;
  const nlohmann::json json = parse_json(text, what);
  const JsonObject object(json, what);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto number = [&](const char* key, double least, double most) -> std::optional<double> {
    if (object.find(key) == nullptr) return std::nullopt;
    const double value = object.number_or(key, 0);
    require(value >= least && value <= most, ErrorKind::data, "{}: '{}' is {}, not within [{}, {}]",
            what, key, value, least, most);
    return value;
  };
  if (object.find("do_sample") != nullptr) out.do_sample = object.flag_or("do_sample", false);
  out.temperature = number("temperature", 0, infinity);
  out.top_p = number("top_p", 0, 1);
  if (out.top_p == 0.0) out.top_p.reset();  // the likeliest alone, which temperature 0 says
  out.top_k = object.maybe_integer("top_k", 0, std::numeric_limits<int32_t>::max());
  return out;
}

std::string with_ends(const std::string& text, std::span<const int32_t> ends,
                      const std::string& what) {
  if (text.empty()) return text;
  parse_json(text, what);
  ordered_json json = ordered_json::parse(text);
  ordered_json ids = ordered_json::array();
  if (const auto at = json.find("eos_token_id"); at != json.end() && !at->is_null())
    ids = at->is_array() ? *at : ordered_json::array({*at});
  bool changed = false;
  for (const int32_t end : ends) {
    if (end < 0 || std::ranges::find(ids, ordered_json(end)) != ids.end()) continue;
    ids.push_back(end);
    changed = true;
  }
  if (!changed) return text;
  json["eos_token_id"] = ids.size() == 1 ? ids[0] : ids;
  return json.dump(2) + "\n";
}

}  // namespace rankine
