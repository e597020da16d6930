#include "tensor/box.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {

Box whole(const Shape& shape) {
  Box box{shape, shape};
  for (int d = 0; d < shape.rank(); ++d) box.begin = box.begin.with(d, 0);
  return box;
}

Box piece(const Shape& shape, int dim, int64_t index, int64_t parts) {
  expect(0 <= dim && dim < shape.rank() && 0 <= index && index < parts, "a piece of the shape");
  Box box = whole(shape);
  box.begin = box.begin.with(dim, shape[dim] * index / parts);
  box.end = box.end.with(dim, shape[dim] * (index + 1) / parts);
  return box;
}

Box intersect(const Box& a, const Box& b) {
  expect(a.begin.rank() == b.begin.rank(), "boxes of one tensor");
  Box out = a;
  for (int d = 0; d < a.begin.rank(); ++d) {
    out.begin = out.begin.with(d, std::max(a.begin[d], b.begin[d]));
    out.end = out.end.with(d, std::max(out.begin[d], std::min(a.end[d], b.end[d])));
  }
  return out;
}

int64_t volume(const Box& box) {
  return extent(box).elements();
}

Shape extent(const Box& box) {
  Shape out = box.end;
  for (int d = 0; d < out.rank(); ++d) out = out.with(d, box.end[d] - box.begin[d]);
  return out;
}

std::string to_string(const Box& box) {
  std::string out = "[";
  for (int d = 0; d < box.begin.rank(); ++d)
    out += fmt::format("{}{}:{}", d > 0 ? ", " : "", box.begin[d], box.end[d]);
  return out + "]";
}

}  // namespace rankine
