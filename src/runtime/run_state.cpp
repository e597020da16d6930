#include "runtime/run_state.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "checkpoint/hf_config.h"
#include "checkpoint/json.h"

namespace rankine {

std::string run_state_text(const RunState& s) {
  nlohmann::ordered_json json;
  json["step"] = s.step;
  json["tokens"] = s.tokens;
  json["updates"] = s.trainer.updates;
  json["loss_scale"] = {{"scale", s.trainer.loss_scale.scale},
                        {"finite_steps", s.trainer.loss_scale.finite_steps},
                        {"tolerance", s.trainer.loss_scale.tolerance}};
  json["update_lags"] = s.trainer.lags;
  json["hopeless_updates"] = s.trainer.hopeless;
  json["model"] = nlohmann::ordered_json::parse(hf_config_text(s.model, DType::f32));
  json["tokenizer"] = s.tokenizer;
  json["data_identity"] = s.data_identity;
  json["configuration"] = s.configuration;
  return json.dump();
}

RunState parse_run_state(const std::string& text, const std::string& what) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const nlohmann::json json = parse_json(text, what);
  const JsonObject object(json, what);
  RunState s;
  s.step = object.integer("step", 0, most);
  s.tokens = object.integer("tokens", 0, most);
  s.trainer.updates = object.integer("updates", 0, most);
  const JsonObject scale(object.at("loss_scale"), what);
  s.trainer.loss_scale = {scale.number_or("scale", 1), scale.integer("finite_steps", 0, most),
                          scale.integer("tolerance", 0, LossScale::hysteresis)};
  s.trainer.lags = json.value("update_lags", false);
  // Older checkpoints do not count them.
  if (json.contains("hopeless_updates"))
    s.trainer.hopeless = object.integer("hopeless_updates", 0, most);
  s.model = parse_hf_config(object.at("model").dump(), what);
  s.tokenizer = object.text("tokenizer");
  s.data_identity = object.text("data_identity");
  s.configuration = object.text("configuration");
  return s;
}

}  // namespace rankine
