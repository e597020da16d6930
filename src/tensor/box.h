#pragma once
#include "tensor/shape.h"

// A half-open index box of a global tensor. Tensor-parallel pieces, ZeRO shards and resharding
// checkpoints all speak this one notion.
namespace rankine {

struct Box {
  Shape begin, end;
  bool operator==(const Box&) const = default;
};

Box whole(const Shape& shape);
// The index-th of `parts` pieces along `dim`; sizes differ by at most one, earlier ones smaller.
Box piece(const Shape& shape, int dim, int64_t index, int64_t parts);
Box intersect(const Box& a, const Box& b);  // volume 0 when they do not meet
int64_t volume(const Box& box);
Shape extent(const Box& box);
std::string to_string(const Box& box);  // "[0:4, 2:8]"

// Calls run(offset_in_a, offset_in_b, count) for each contiguous run of elements that tensors
// holding boxes a and b share; offsets and counts in elements.
template <class Run>
void for_each_shared_run(const Box& a, const Box& b, Run&& run);

}  // namespace rankine

#include "tensor/box_runs.h"
