#pragma once
#include <cstdint>

#include "tensor/dtype.h"

namespace rankine {

// The values of some memory that are no finite numbers.
struct NonFinite {
  int64_t count = 0, first = -1;  // first: an index; -1 when there is none
  double value = 0;               // of the first
};

// Among `count` values of f32, bf16, f16 or f64 in host memory.
NonFinite find_non_finite(const void* data, DType dtype, int64_t count);

}  // namespace rankine
