#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/scalar.h"

namespace rankine::RANKINE_ISA {
namespace {

constexpr int64_t block = 8192;  // elements one thread converts at a time

template <class From, class To>
void cast(const void* from, void* to, int64_t count, int threads) {
  const From* source = static_cast<const From*>(from);
  To* target = static_cast<To*>(to);
  for_each(blocks_of(count, block), threads, [=](int64_t b) {
    const int64_t end = smaller(count, (b + 1) * block);
#pragma omp simd
    for (int64_t i = b * block; i < end; ++i) down(target[i], up(source[i]));
  });
}

template <class From, class To>
void cast_rows(const CastRowsCall& call) {
  const From* from = static_cast<const From*>(call.from);
  To* to = static_cast<To*>(call.to);
  const int64_t rows = call.rows, width = call.width;
  for_rows(rows, width, call.threads, [&, from, to, width](int64_t r) {
    const From* source = from + r * call.from_stride;
    To* target = to + r * call.to_stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) down(target[i], up(source[i]));
  });
}

}  // namespace

CastKernels cast_kernels() {
  return {.cast = {{cast<float, float>, cast<float, Bf16>, cast<float, F16>},
                   {cast<Bf16, float>, cast<Bf16, Bf16>, cast<Bf16, F16>},
                   {cast<F16, float>, cast<F16, Bf16>, cast<F16, F16>}},
          .cast_rows = {{cast_rows<float, float>, cast_rows<float, Bf16>, cast_rows<float, F16>},
                        {cast_rows<Bf16, float>, cast_rows<Bf16, Bf16>, cast_rows<Bf16, F16>},
                        {cast_rows<F16, float>, cast_rows<F16, Bf16>, cast_rows<F16, F16>}}};
}

}  // namespace rankine::RANKINE_ISA
