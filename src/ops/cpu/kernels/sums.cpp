#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"

namespace rankine::RANKINE_ISA {
namespace {

constexpr int64_t sum_block = 65536;

using Floats [[gnu::vector_size(16), gnu::aligned(4)]] = float;
using Doubles [[gnu::vector_size(32)]] = double;

// Sixteen sums side by side whatever the instruction set, so that all of them give the same bits.
template <bool squares>
double block_sum(const float* x, int64_t count) {
  Doubles sums[4] = {};
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int part = 0; part < 4; ++part) {
      const Floats from = *reinterpret_cast<const Floats*>(x + i + 4 * part);
      const Doubles v = __builtin_convertvector(from, Doubles);
      sums[part] += squares ? v * v : v;
    }
  }
  const Doubles joined = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double total = (joined[0] + joined[1]) + (joined[2] + joined[3]);
  for (; i < count; ++i) {
    const auto v = static_cast<double>(x[i]);
    total += squares ? v * v : v;
  }
  return total;
}

size_t workspace(int64_t count) {
  return static_cast<size_t>(blocks_of(count, sum_block)) * sizeof(double);
}

template <bool squares>
void sum(const float* x, int64_t count, double* total, bool accumulate, void* space, int threads) {
  double* partial = static_cast<double*>(space);
  const int64_t blocks = blocks_of(count, sum_block);
#pragma omp parallel for schedule(static) num_threads(threads) if (blocks > 1)
  for (int64_t b = 0; b < blocks; ++b)
    partial[b] = block_sum<squares>(x + b * sum_block, smaller(sum_block, count - b * sum_block));
  double joined = 0;
  for (int64_t b = 0; b < blocks; ++b) joined += partial[b];
  *total = accumulate ? *total + joined : joined;
}

}  // namespace

SumKernels sum_kernels() {
  return {.sum = sum<false>, .sum_squares = sum<true>, .workspace = workspace};
}

}  // namespace rankine::RANKINE_ISA
