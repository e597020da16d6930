#pragma once
#include <vector>

#include "model/block.h"

// The tensors of a layer's parts. Each part numbers its own; the layer joins them into one
// description and tells each part where its tensors have come to lie.
namespace rankine {

// What forward makes for backward. A recomputation of at least `remade` makes it again instead of
// keeping it; none: it is always kept.
struct SavedTensor {
  TensorSpec spec;
  Recompute remade = Recompute::none;
};

struct PartTensors {
  std::vector<SavedTensor> saved;
  std::vector<TensorSpec> pending;
  // Scratch of one name is shared by all parts of a layer.
  std::vector<TensorSpec> forward_scratch, backward_scratch;
};

// For each of a part's tensors, in its own order, the number among the layer's.
struct PartIndices {
  std::vector<size_t> saved, pending, forward_scratch, backward_scratch;
};

// Appends the parts' tensors to the description: what is kept before what is recomputed.
std::vector<PartIndices> join_parts(std::span<const PartTensors> parts, Recompute recompute,
                                    BlockDescription& description);

}  // namespace rankine
