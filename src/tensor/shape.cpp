#include "tensor/shape.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace rankine {

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  expect(dims.size() <= max_rank, "a shape has at most four dims");
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

int64_t Shape::elements() const {
  int64_t count = 1;
  for (const int64_t extent : dims()) count *= extent;
  return count;
}

Shape Shape::with(int dim, int64_t extent) const {
  Shape out = *this;
  out.dims_[static_cast<size_t>(dim)] = extent;
  return out;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims(), ", "));
}

}  // namespace rankine
