#include "checkpoint/hf_rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace rankine {
namespace {

using nlohmann::json;

constexpr double default_theta = 10000;
constexpr int64_t most_positions = int64_t{1} << 31;

struct Kind {
  std::string_view name;
  RopeKind kind;
  std::vector<std::string_view> keys;  // beside rope_type, type and rope_theta
};

const Kind& find_kind(const std::string& name, const std::string& what) {
  static const std::array<Kind, 4> kinds{{
      {"default", RopeKind::plain, {}},
      {"linear", RopeKind::linear, {"factor"}},
      {"llama3",
       RopeKind::llama3,
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
      {"yarn",
       RopeKind::yarn,
       {"factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow",
        "mscale", "mscale_all_dim", "truncate"}},
  }};
  for (const Kind& kind : kinds)
    if (kind.name == name) return kind;
  fail(
      ErrorKind::data,
      "{}: rope scaling of type '{}' is not supported; supported are default, linear, llama3, yarn",
      what, name);
}

void refuse_unknown_keys(const json& scaling, const Kind& kind, const std::string& what) {
  for (const auto& [key, value] : scaling.items()) {
    if (key == "rope_type" || key == "type" || key == "rope_theta" || value.is_null()) continue;
    // A rotation of all dims is the only one there is here, and the meaning of leaving it out.
    if (key == "partial_rotary_factor" && value == 1) continue;
    const bool known = std::find(kind.keys.begin(), kind.keys.end(), key) != kind.keys.end();
    // Configs that were edited from one kind to another keep keys that "default" does not read.
    require(known || (kind.kind == RopeKind::plain && value.is_number() &&
                      key != "partial_rotary_factor"),
            ErrorKind::data, "{}: rope scaling of type '{}' with '{}' = {} is not supported", what,
            kind.name, key, json_excerpt(value));
  }
}

double magnitude_scale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

void read_yarn(const JsonObject& scaling, RopeConfig& rope) {
  rope.beta_fast = scaling.number_or("beta_fast", 32);
  rope.beta_slow = scaling.number_or("beta_slow", 1);
  rope.truncate = scaling.flag_or("truncate", true);
  rope.attention_factor = scaling.number_or("attention_factor", 0);
  const double mscale = scaling.number_or("mscale", 0);
  const double mscale_all = scaling.number_or("mscale_all_dim", 0);
  if (rope.attention_factor == 0 && mscale != 0 && mscale_all != 0)
    rope.attention_factor =
        magnitude_scale(rope.factor, mscale) / magnitude_scale(rope.factor, mscale_all);
  require(rope.attention_factor >= 0 && rope.beta_fast > rope.beta_slow && rope.beta_slow > 0,
          ErrorKind::data, "{}: attention_factor {}, beta_fast {}, beta_slow {} are not in order",
          scaling.what(), rope.attention_factor, rope.beta_fast, rope.beta_slow);
}

// One of the two objects that describe rope; `theta` is what the config says outside of it.
RopeConfig parse_scaling(const json& value, const std::string& what, double theta,
                         int64_t positions) {
  const JsonObject scaling(value, what);
  const std::string older = scaling.text_or("type", "default");
  const Kind& kind = find_kind(scaling.text_or("rope_type", older), what);
  refuse_unknown_keys(value, kind, what);
  RopeConfig rope;
  rope.kind = kind.kind;
  rope.theta = scaling.number_or("rope_theta", theta);
  if (kind.kind == RopeKind::plain) return rope;
  const auto original =
      scaling.maybe_integer("original_max_position_embeddings", 1, most_positions);
  const bool derived = kind.kind == RopeKind::yarn && original.has_value();
  require(derived || scaling.find("factor") != nullptr, ErrorKind::data, "{} lacks 'factor'", what);
  rope.factor = scaling.number_or(
      "factor", derived ? static_cast<double>(positions) / static_cast<double>(*original) : 1);
  require(rope.factor >= 1, ErrorKind::data, "{}: factor is {}, it must be 1 or more", what,
          rope.factor);
  if (kind.kind == RopeKind::llama3) {
    require(original.has_value() && scaling.find("low_freq_factor") != nullptr &&
                scaling.find("high_freq_factor") != nullptr,
            ErrorKind::data,
            "{}: type llama3 needs low_freq_factor, high_freq_factor and "
            "original_max_position_embeddings",
            what);
    rope.original_positions = *original;
    rope.low_freq_factor = scaling.number_or("low_freq_factor", 1);
    rope.high_freq_factor = scaling.number_or("high_freq_factor", 4);
  }
  if (kind.kind == RopeKind::yarn) {
    rope.original_positions = original.value_or(positions);
    read_yarn(scaling, rope);
  }
  return rope;
}

}  // namespace

RopeConfig parse_hf_rope(const JsonObject& config, int64_t positions) {
  const json* scaling = config.find("rope_scaling");
  const json* parameters = config.find("rope_parameters");
  const double theta = config.number_or("rope_theta", default_theta);
  RopeConfig rope;
  rope.theta = theta;
  if (parameters != nullptr)
    rope = parse_scaling(*parameters, config.what() + ": 'rope_parameters'", theta, positions);
  if (scaling != nullptr) {
    // Files made for both generations of transformers say the same thing twice.
    const double inner = parameters != nullptr ? rope.theta : theta;
    const RopeConfig older =
        parse_scaling(*scaling, config.what() + ": 'rope_scaling'", inner, positions);
    require(parameters == nullptr || older == rope, ErrorKind::data,
            "{}: 'rope_scaling' and 'rope_parameters' contradict each other", config.what());
    rope = older;
  }
  require(config.find("rope_theta") == nullptr || rope.theta == theta, ErrorKind::data,
          "{}: rope_theta is {} in one place and {} in another", config.what(), theta, rope.theta);
  return rope;
}

nlohmann::ordered_json hf_rope_scaling(const RopeConfig& rope) {
  nlohmann::ordered_json out;
  switch (rope.kind) {
    case RopeKind::plain:
      return out;
    case RopeKind::linear:
      out["rope_type"] = "linear";
      break;
    case RopeKind::llama3:
      out["rope_type"] = "llama3";
      break;
    case RopeKind::yarn:
      out["rope_type"] = "yarn";
      break;
  }
  out["factor"] = rope.factor;
  if (rope.kind == RopeKind::linear) return out;
  out["original_max_position_embeddings"] = rope.original_positions;
  if (rope.kind == RopeKind::llama3) {
    out["low_freq_factor"] = rope.low_freq_factor;
    out["high_freq_factor"] = rope.high_freq_factor;
    return out;
  }
  out["beta_fast"] = rope.beta_fast;
  out["beta_slow"] = rope.beta_slow;
  if (rope.attention_factor != 0) out["attention_factor"] = rope.attention_factor;
  if (!rope.truncate) out["truncate"] = false;
  return out;
}

}  // namespace rankine
