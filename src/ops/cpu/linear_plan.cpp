#include "ops/cpu/linear_plan.h"

#include <algorithm>

namespace rankine {

Product forward_product(const LinearSizes& sizes, DType dtype, bool bias) {
  return {.m = sizes.rows,
          .n = sizes.outputs,
          .k = sizes.inputs,
          .transpose_b = true,
          .bias = bias,
          .input = dtype,
          .output = dtype};
}

Product input_grad_product(const LinearSizes& sizes, DType dtype, bool accumulate) {
  return {.m = sizes.rows,
          .n = sizes.inputs,
          .k = sizes.outputs,
          .accumulate = accumulate,
          .input = dtype,
          .output = dtype};
}

Product weight_grad_product(const LinearSizes& sizes, DType dtype, bool accumulate) {
  return {.m = sizes.outputs,
          .n = sizes.inputs,
          .k = sizes.rows,
          .transpose_a = true,
          .accumulate = accumulate,
          .input = dtype,
          .output = DType::f32};
}

LinearChunks chunks_of(const LinearSizes& sizes) {
  constexpr int64_t limit = (int64_t{64} << 20) / 4;
  const int64_t rows = std::min<int64_t>(sizes.rows, 2048);
  const int64_t fitting = limit / std::max(sizes.inputs, rows);
  return {rows, std::min(sizes.outputs, std::max<int64_t>(fitting / 64 * 64, 64))};
}

ChunkBuffers chunk_buffers(const LinearSizes& sizes) {
  const LinearChunks chunks = chunks_of(sizes);
  size_t end = 0;
  const auto place = [&end](int64_t floats) {
    const size_t start = end;
    end += (static_cast<size_t>(floats) * 4 + 63) / 64 * 64;
    return start;
  };
  ChunkBuffers buffers{};
  buffers.x = place(chunks.rows * sizes.inputs);
  buffers.w = place(chunks.outputs * sizes.inputs);
  buffers.y = place(chunks.rows * chunks.outputs);
  buffers.bias = place(sizes.outputs);
  buffers.bytes = end;
  return buffers;
}

}  // namespace rankine
