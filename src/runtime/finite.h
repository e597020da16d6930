#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "runtime/engine.h"

// Values of model states that are no finite numbers: found, counted and named.
namespace rankine {

struct NonFiniteState {
  std::string group, tensor;   // "weights", "layers.0.mlp.up.weight"
  std::vector<int64_t> index;  // of the first such value in the whole tensor
  double value = 0;            // that one
  int64_t count = 0;           // of all groups
};

// The first one in the order of the groups and the model. All ranks of the engine's mesh call it
// together, each with its counted pieces or, where those are another rank's, none.
std::optional<NonFiniteState> find_non_finite(const Engine& engine,
                                              std::span<const TensorGroup> groups);
// "3 values of the weights are not finite, the first is nan, element [0, 5] of 'x'"; `tensor` and
// `index` in place of the state's own name.
std::string describe(const NonFiniteState& found, const std::string& tensor,
                     const std::vector<int64_t>& index);
std::string describe(const NonFiniteState& found);

// Error{data} when what the engine computes with is not finite although its weights are: they lie
// beyond what the dtype can hold. All ranks call it together.
void require_computable(const Engine& engine);

}  // namespace rankine
