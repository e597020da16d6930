#pragma once
#include <cstdint>
#include <string>

#include "tensor/finite.h"

namespace rankine {

// The first tensor of a computation with values that are not finite.
struct Trouble {
  int64_t place = -1;  // in the order in which values follow from each other; -1: there is none
  std::string block;   // "layers.3"
  std::string tensor;  // "the weight 'layers.3.mlp.up.weight'", "the activation 'qkv'"
  int64_t micro = -1;  // of the global batch; -1: of none
  int64_t elements = 0;
  NonFinite found;

  bool arose() const { return place >= 0; }
};

// "block layers.3, the activation 'qkv' of micro-batch 0: 3 of 512 values are not finite, the first
// is inf".
std::string to_string(const Trouble& trouble);

}  // namespace rankine
