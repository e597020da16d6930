#pragma once
#include "model/param_spec.h"

// The parameters of each kind of block; param_spec.h lists their names.
namespace rankine {

std::vector<ParamSpec> embedding_parameters(const ModelConfig& config);
std::vector<ParamSpec> layer_parameters(const ModelConfig& config, int64_t layer);
std::vector<ParamSpec> head_parameters(const ModelConfig& config);

}  // namespace rankine
