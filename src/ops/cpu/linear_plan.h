#pragma once
#include <cstddef>
#include <cstdint>

#include "ops/cpu/onednn.h"

// The three products of a linear layer, and how they are cut when operands must be converted to
// f32 first: by rows so that the converted pieces stay in cache, by outputs so that they are
// bounded.
namespace rankine {

struct LinearSizes {
  int64_t rows, inputs, outputs;
};

// y = x w^T (+ bias)
Product forward_product(const LinearSizes& sizes, DType dtype, bool bias);
// dx (+)= dy w
Product input_grad_product(const LinearSizes& sizes, DType dtype, bool accumulate);
// dw (+)= dy^T x, in f32
Product weight_grad_product(const LinearSizes& sizes, DType dtype, bool accumulate);

struct LinearChunks {
  int64_t rows, outputs;
};
// At most 64 MiB of f32 for the weights and for the outputs of one chunk.
LinearChunks chunks_of(const LinearSizes& sizes);

// Offsets of f32 pieces in the workspace: x [rows, inputs], w [outputs, inputs],
// y [rows, outputs] of one chunk, the whole bias, then the product's own scratch at `bytes`.
struct ChunkBuffers {
  size_t x, w, y, bias, bytes;
};
ChunkBuffers chunk_buffers(const LinearSizes& sizes);

}  // namespace rankine
