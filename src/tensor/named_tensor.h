#pragma once
#include <string>

#include "tensor/box.h"
#include "tensor/tensor.h"

namespace rankine {

// One logical tensor's piece as this rank holds it: `data` has the elements of `box` of a global
// tensor called `name` with extents `shape`.
struct NamedTensor {
  std::string name;
  Shape shape;
  Box box;
  Tensor data;
};

}  // namespace rankine
