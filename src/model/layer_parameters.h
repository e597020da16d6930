#pragma once
#include "model/param_spec.h"

// The parameters of each kind of block that one rank of the tensor axis holds; param_spec.h lists
// their names.
namespace rankine {

std::vector<ParamSpec> embedding_parameters(const ModelConfig& config, const TensorSplit& split);
std::vector<ParamSpec> layer_parameters(const ModelConfig& config, int64_t layer,
                                        const TensorSplit& split);
// `copy`: also the tied token matrix, as a copy that does not count.
std::vector<ParamSpec> head_parameters(const ModelConfig& config, const TensorSplit& split,
                                       bool copy);

}  // namespace rankine
