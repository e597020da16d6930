#pragma once
#include "checkpoint/json.h"
#include "model/config.h"

// The rotary embedding's part of config.json: rope_theta and rope_scaling, or rope_parameters.
namespace rankine {

// `positions` is the config's longest sequence. Error{data} for kinds and keys not known here.
RopeConfig parse_hf_rope(const JsonObject& config, int64_t positions);
// The value of "rope_scaling": null for plain.
nlohmann::ordered_json hf_rope_scaling(const RopeConfig& rope);

}  // namespace rankine
