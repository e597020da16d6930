#pragma once
#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/named_tensor.h"

// Walking a box of a parameter in blocks of rows that fit a small buffer.
namespace rankine {

struct RowBlock {
  int64_t first_row, rows;        // of the parameter [outputs, inputs]; a vector has one input
  int64_t first_column, columns;  // of the box, the same in all blocks
  int64_t inputs;
  int64_t offset;  // of the block among the box's elements
};

// Calls visit(block, buffer), the buffer having rows * columns floats.
template <class Visit>
void for_each_row_block(const Shape& shape, const Box& box, Visit&& visit) {
  constexpr int64_t chunk_elements = 1 << 20;
  const bool matrix = shape.rank() > 1;
  RowBlock block{
      box.begin[0],          0, matrix ? box.begin[1] : 0, matrix ? box.end[1] - box.begin[1] : 1,
      matrix ? shape[1] : 1, 0};
  if (volume(box) == 0) return;
  const int64_t step = std::max<int64_t>(1, chunk_elements / block.columns);
  std::vector<float> buffer;
  for (; block.first_row < box.end[0]; block.first_row += block.rows) {
    block.rows = std::min(step, box.end[0] - block.first_row);
    block.offset = (block.first_row - box.begin[0]) * block.columns;
    buffer.resize(static_cast<size_t>(block.rows * block.columns));
    visit(block, std::span<float>(buffer));
  }
}

using WeightsByName = std::multimap<std::string, const NamedTensor*>;

// Boxes by parameter name. Internal error when one is not f32 or its data has another size.
inline WeightsByName by_name(std::span<const NamedTensor> weights) {
  WeightsByName out;
  for (const NamedTensor& weight : weights) {
    expect(weight.data.dtype == DType::f32, "weights are f32");
    expect(weight.data.elements() == volume(weight.box), "the data of a box has its volume");
    expect(weight.shape.rank() == 1 || weight.shape.rank() == 2,
           "a weight is a vector or a matrix");
    out.emplace(weight.name, &weight);
  }
  return out;
}

}  // namespace rankine
