#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"

namespace rankine::RANKINE_ISA {
namespace {

constexpr int64_t sum_block = 65536;

using Floats [[gnu::vector_size(16), gnu::aligned(4)]] = float;
using Doubles [[gnu::vector_size(32)]] = double;

// Sixteen sums side by side whatever the instruction set, so that all of them give the same bits.
constexpr int64_t group = 64;  // squares are summed exactly beyond so many
constexpr int exact_digits = 68;

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

// As ExactSum::add, for a square: never negative.
void add_exact(int64_t* digits, double x) {
  const auto bits = __builtin_bit_cast(uint64_t, x);
  const uint64_t exponent = bits >> 52 & 0x7ff, fraction = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 0x7ff) {
    ++digits[exact_digits];
    return;
  }
  const uint64_t position = exponent == 0 ? 0 : exponent - 1;
  const uint64_t mantissa = exponent == 0 ? fraction : fraction | uint64_t{1} << 52;
  const auto shift = static_cast<int>(position % 32);
  const uint64_t low = mantissa << shift, high = shift == 0 ? 0 : mantissa >> (64 - shift);
  int64_t* digit = digits + position / 32;
  digit[0] += static_cast<int64_t>(low & 0xffffffff);
  digit[1] += static_cast<int64_t>(low >> 32);
  digit[2] += static_cast<int64_t>(high);
}

void sum_squares(const float* x, int64_t count, int64_t* exact, int threads) {
  const int64_t blocks = blocks_of(count, sum_block);
#pragma omp parallel num_threads(threads) if (blocks > 1)
  {
    int64_t mine[exact_digits + 1] = {};
#pragma omp for schedule(static)
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t end = smaller(count, (b + 1) * sum_block);
      for (int64_t i = b * sum_block; i < end; i += group)
        add_exact(mine, block_sum<true>(x + i, smaller(group, end - i)));
    }
#pragma omp critical
    for (int i = 0; i <= exact_digits; ++i) exact[i] += mine[i];
  }
}

void sum(const float* x, int64_t count, double* total, bool accumulate, void* space, int threads) {
  double* partial = static_cast<double*>(space);
  const int64_t blocks = blocks_of(count, sum_block);
  for_each(blocks, threads, [=](int64_t b) {
    partial[b] = block_sum<false>(x + b * sum_block, smaller(sum_block, count - b * sum_block));
  });
  double joined = 0;
  for (int64_t b = 0; b < blocks; ++b) joined += partial[b];
  *total = accumulate ? *total + joined : joined;
}

}  // namespace

SumKernels sum_kernels() {
  return {.sum = sum, .sum_squares = sum_squares, .workspace = workspace};
}

}  // namespace rankine::RANKINE_ISA
