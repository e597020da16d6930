#pragma once
#include "tensor/box.h"

namespace rankine {

// Row-major offset of global index `at` within a tensor that holds `box`.
inline int64_t offset_in(const Box& box, const Shape& at) {
  int64_t offset = 0;
  for (int d = 0; d < at.rank(); ++d)
    offset = offset * (box.end[d] - box.begin[d]) + (at[d] - box.begin[d]);
  return offset;
}

template <class Run>
void for_each_shared_run(const Box& a, const Box& b, Run&& run) {
  const Box shared = intersect(a, b);
  if (volume(shared) == 0) return;
  const int last = shared.begin.rank() - 1;
  if (last < 0) return run(int64_t{0}, int64_t{0}, int64_t{1});
  const int64_t count = shared.end[last] - shared.begin[last];
  Shape at = shared.begin;
  for (;;) {
    run(offset_in(a, at), offset_in(b, at), count);
    int d = last - 1;
    for (; d >= 0; --d) {
      at = at.with(d, at[d] + 1);
      if (at[d] < shared.end[d]) break;
      at = at.with(d, shared.begin[d]);
    }
    if (d < 0) return;
  }
}

}  // namespace rankine
