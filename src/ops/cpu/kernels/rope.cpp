#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/scalar.h"

namespace rankine::RANKINE_ISA {
namespace {

// Turns the pairs (x[i], x[half + i]) by the angles of the table row; direction -1 turns back.
template <class S>
void turn_head(S* x, const float* cosines, const float* sines, float direction, int64_t half) {
  S* second = x + half;
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) {
    const float a = up(x[i]), b = up(second[i]), sine = sines[i] * direction;
    down(x[i], a * cosines[i] - b * sine);
    down(second[i], b * cosines[i] + a * sine);
  }
}

template <class S>
void rope(const RopeCall& call) {
  S* qkv = static_cast<S*>(call.qkv);
  const int64_t dim = call.head_dim, half = dim / 2;
  const float direction = call.inverse ? -1.0f : 1.0f;
  for_rows(call.rows, call.row_width, call.threads, [&, qkv](int64_t r) {
    const float* cosines = call.table + (call.first_position + r % call.tokens) * dim;
    S* row = qkv + r * call.row_width;
    for (int64_t h = 0; h < call.rotated_heads; ++h)
      turn_head(row + h * dim, cosines, cosines + half, direction, half);
  });
}

}  // namespace

RopeKernels rope_kernels() {
  return {.rope = {rope<float>, rope<Bf16>, rope<F16>}};
}

}  // namespace rankine::RANKINE_ISA
