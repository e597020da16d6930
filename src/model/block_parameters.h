#pragma once
#include <span>

#include "model/param_spec.h"

// The parameters of each kind of block that one rank of the tensor axis holds, and the name by
// which the block's own code calls each. param_spec.h lists the global names.
namespace rankine {

// Numbers of groups of joined parameters, as BlockRun::params and grads count them; -1: absent.
struct LinearGroups {
  int weight = -1, bias = -1;
};
struct NormGroups {
  int weight = -1, bias = -1;
};

struct EmbeddingParameters {
  std::vector<ParamSpec> specs;
  int tokens = -1, positions = -1;
};
EmbeddingParameters embedding_parameters(const ModelConfig& config, const TensorSplit& split);

struct AttentionGroups {
  LinearGroups qkv, out;
  NormGroups norm;
  int q_norm = -1, k_norm = -1;
};
struct FeedForwardGroups {
  LinearGroups up, down;  // up: gate and up joined where there is a gate
  NormGroups norm;
};
struct LayerParameters {
  std::vector<ParamSpec> specs;
  AttentionGroups attention;
  FeedForwardGroups feed_forward;
};
LayerParameters layer_parameters(const ModelConfig& config, int64_t layer,
                                 const TensorSplit& split);

struct HeadParameters {
  std::vector<ParamSpec> specs;
  bool tied = false;  // the matrix is the embedding's own and comes behind the groups of `specs`
  int matrix = -1;
  NormGroups norm;
};
// `copy`: also the tied token matrix, as a copy that does not count.
HeadParameters head_parameters(const ModelConfig& config, const TensorSplit& split, bool copy);

// Extents of each group of joined parameters as one matrix or vector: the rows add up.
std::vector<ParamSpec> joined_groups(std::span<const ParamSpec> parameters);

}  // namespace rankine
