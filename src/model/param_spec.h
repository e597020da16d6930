#pragma once
#include <string>
#include <vector>

#include "model/tensor_split.h"
#include "tensor/box.h"

namespace rankine {

enum class Init : uint8_t { normal, zeros, ones };

// The ranks of the tensor axis whose gradients of a parameter add up: each has seen a part of what
// it does.
enum class GradientSum : uint8_t {
  none,     // this rank's is complete
  tensor,   // all ranks of the axis
  replicas  // those that hold the same key/value heads
};

// All that optimizer, checkpoint, planner and initialiser need to know of a parameter.
struct ParamSpec {
  std::string name;  // global, e.g. "layers.3.attention.q.weight"
  Shape shape;       // logical global extents, e.g. [50257, 768]
  Box box;           // of it, what this rank holds
  int64_t stored_rows =
      0;                // extent of dim 0 in memory; >= the box's, the rest is padding kept at 0
  bool joined = false;  // lies directly behind the one before it: one matrix in one product
  bool decay = false;   // weight decay applies (matrices)
  Init init = Init::normal;
  float std = 0;  // of Init::normal
  GradientSum sum = GradientSum::none;
  bool counted = true;  // in norms and files; other copies of the same elements are not

  Shape stored() const { return extent(box).with(0, stored_rows); }
};

// The names, in order of the blocks (embedding, layers.0 ... layers.L-1, head):
//   embedding.tokens.weight [V,C]  embedding.positions.weight [P,C] (learned positions)
//   layers.N.attention.{q,k,v}.weight [H*D | K*D, C]   .bias   (joined q, k, v)
//   layers.N.attention.out.weight [C, H*D]             .bias
//   layers.N.mlp.{gate,up}.weight [F,C] (gate: swiglu only, joined)   .bias
//   layers.N.mlp.down.weight [C,F]                     .bias
//   layers.N.attention_norm.weight [C] .bias   layers.N.mlp_norm.weight .bias   (bias: layer norm)
//   layers.N.attention.{q,k}_norm.weight [D] (qk_norm)
//   head.norm.weight [C] .bias    head.weight [V,C] (untied)
std::vector<ParamSpec> model_parameters(const ModelConfig& config);
int64_t parameter_count(const ModelConfig& config);  // logical elements, tied weights once

}  // namespace rankine
