#include "ops/cpu/linear_converted.h"

#include <algorithm>

#include "ops/cpu/cpu_ops.h"

namespace rankine {
namespace {

struct Piece {
  int64_t row, rows, column, columns;
};

char* at(const Tensor& matrix, int64_t row, int64_t column) {
  return static_cast<char*>(matrix.data) +
         (row * matrix.shape[1] + column) * dtype_bytes(matrix.dtype);
}

// The f32 pieces of one layer in the workspace, and what moves data in and out of them.
class Pieces {
 public:
  Pieces(const LinearContext& context, const LinearSizes& sizes)
      : context_(context), buffers_(chunk_buffers(sizes)) {}

  float* x() const { return place(buffers_.x); }
  float* w() const { return place(buffers_.w); }
  float* y() const { return place(buffers_.y); }
  float* bias() const { return place(buffers_.bias); }

  void load(const Tensor& from, const Piece& piece, float* to) const {
    context_.casts.cast_rows[storage_of(from.dtype)][storage_f32](
        {.from = at(from, piece.row, piece.column),
         .to = to,
         .rows = piece.rows,
         .width = piece.columns,
         .from_stride = from.shape[1],
         .to_stride = piece.columns,
         .threads = context_.threads});
  }
  void store(const float* from, const Piece& piece, const Tensor& to) const {
    context_.casts.cast_rows[storage_f32][storage_of(to.dtype)](
        {.from = from,
         .to = at(to, piece.row, piece.column),
         .rows = piece.rows,
         .width = piece.columns,
         .from_stride = piece.columns,
         .to_stride = to.shape[1],
         .threads = context_.threads});
  }
  void multiply(const Product& product, ProductOperands operands) const {
    operands.scratch = place(buffers_.bytes);
    context_.matmul.run(product, operands);
  }

 private:
  float* place(size_t offset) const {
    return reinterpret_cast<float*>(static_cast<char*>(context_.workspace) + offset);
  }
  const LinearContext& context_;
  ChunkBuffers buffers_;
};

// Calls run(first row, rows, first output, outputs) over all chunks, outputs innermost.
template <class Run>
void for_each_chunk(const LinearSizes& sizes, Run&& run) {
  const LinearChunks chunks = chunks_of(sizes);
  for (int64_t r = 0; r < sizes.rows; r += chunks.rows)
    for (int64_t o = 0; o < sizes.outputs; o += chunks.outputs)
      run(r, std::min(chunks.rows, sizes.rows - r), o, std::min(chunks.outputs, sizes.outputs - o));
}

// Whether one chunk of the weights holds all of them: then they are converted only once.
bool whole_weight(const LinearSizes& sizes) {
  return chunks_of(sizes).outputs == sizes.outputs;
}

}  // namespace

size_t converted_workspace(Matmul& matmul, const LinearSizes& sizes) {
  const LinearChunks chunks = chunks_of(sizes);
  size_t scratch = 0;
  for (const int64_t rows : {chunks.rows, sizes.rows % chunks.rows})
    for (const int64_t outputs : {chunks.outputs, sizes.outputs % chunks.outputs})
      for (const bool flag : {false, true}) {
        if (rows == 0 || outputs == 0) continue;
        const LinearSizes part{rows, sizes.inputs, outputs};
        for (const Product& product :
             {forward_product(part, DType::f32, flag), input_grad_product(part, DType::f32, flag),
              weight_grad_product(part, DType::f32, flag)})
          scratch = std::max(scratch, matmul.scratch_bytes(product));
      }
  return chunk_buffers(sizes).bytes + scratch;
}

void converted_linear(const LinearContext& context, const Tensor& x, const Tensor& w,
                      const Tensor& bias, const Tensor& y) {
  const LinearSizes sizes{x.shape[0], x.shape[1], y.shape[1]};
  const Pieces pieces(context, sizes);
  if (!bias.empty())
    context.casts.cast[storage_of(bias.dtype)][storage_f32](bias.data, pieces.bias(), sizes.outputs,
                                                            context.threads);
  for_each_chunk(sizes, [&](int64_t r, int64_t rows, int64_t o, int64_t outputs) {
    if (o == 0) pieces.load(x, {r, rows, 0, sizes.inputs}, pieces.x());
    if (r == 0 || !whole_weight(sizes)) pieces.load(w, {o, outputs, 0, sizes.inputs}, pieces.w());
    pieces.multiply(forward_product({rows, sizes.inputs, outputs}, DType::f32, !bias.empty()),
                    {pieces.x(), pieces.w(), pieces.bias() + o, pieces.y(), nullptr});
    pieces.store(pieces.y(), {r, rows, o, outputs}, y);
  });
}

void converted_input_grad(const LinearContext& context, const Tensor& dy, const Tensor& w,
                          const Tensor& dx) {
  const LinearSizes sizes{dx.shape[0], dx.shape[1], dy.shape[1]};
  const Pieces pieces(context, sizes);
  for_each_chunk(sizes, [&](int64_t r, int64_t rows, int64_t o, int64_t outputs) {
    pieces.load(dy, {r, rows, o, outputs}, pieces.y());
    if (r == 0 || !whole_weight(sizes)) pieces.load(w, {o, outputs, 0, sizes.inputs}, pieces.w());
    pieces.multiply(input_grad_product({rows, sizes.inputs, outputs}, DType::f32, o > 0),
                    {pieces.y(), pieces.w(), nullptr, pieces.x(), nullptr});
    if (o + outputs == sizes.outputs) pieces.store(pieces.x(), {r, rows, 0, sizes.inputs}, dx);
  });
}

void converted_weight_grad(const LinearContext& context, const Tensor& dy, const Tensor& x,
                           const Tensor& dw, bool accumulate) {
  const LinearSizes sizes{x.shape[0], x.shape[1], dy.shape[1]};
  const Pieces pieces(context, sizes);
  for_each_chunk(sizes, [&](int64_t r, int64_t rows, int64_t o, int64_t outputs) {
    if (o == 0) pieces.load(x, {r, rows, 0, sizes.inputs}, pieces.x());
    pieces.load(dy, {r, rows, o, outputs}, pieces.y());
    pieces.multiply(
        weight_grad_product({rows, sizes.inputs, outputs}, DType::f32, accumulate || r > 0),
        {pieces.y(), pieces.x(), nullptr, at(dw, o, 0), nullptr});
  });
}

}  // namespace rankine
