#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/philox.h"

// Compiled without contraction to fused multiply-adds and free of library functions: every
// instruction set gives the same bits.
namespace rankine::RANKINE_ISA {
namespace {

// ln x for x in [2^-32, 1], relative error below 1e-13.
[[gnu::always_inline]] inline double natural_log(double x) {
  constexpr uint64_t one = uint64_t{1023} << 52, root_half = 0x3fe6a09e667f3bcdu;
  const uint64_t shifted = __builtin_bit_cast(uint64_t, x) + (one - root_half);
  const uint64_t biased = shifted >> 52;  // of x / m with m in [sqrt(1/2), sqrt(2))
  const auto m = __builtin_bit_cast(double, (shifted & ((uint64_t{1} << 52) - 1)) + root_half);
  const double exponent =
      __builtin_bit_cast(double, biased | 0x4330000000000000u) - (0x1p52 + 1023.0);
  const double s = (m - 1.0) / (m + 1.0), q = s * s;
  double p = 1.0 / 17.0;  // ln m = 2 artanh(s)
  p = p * q + 1.0 / 15.0;
  p = p * q + 1.0 / 13.0;
  p = p * q + 1.0 / 11.0;
  p = p * q + 1.0 / 9.0;
  p = p * q + 1.0 / 7.0;
  p = p * q + 1.0 / 5.0;
  p = p * q + 1.0 / 3.0;
  return exponent * 0.693147180559945309 + (2.0 * s + 2.0 * s * q * p);
}

struct Direction {
  double cosine, sine;
};

// cos and sin of 2 pi turn, turn in [0, 1), absolute error below 1e-13.
[[gnu::always_inline]] inline Direction direction(double turn) {
  const double magic = 0x1.8p52;
  const double rounded = 4.0 * turn + magic;
  const uint64_t quadrant = __builtin_bit_cast(uint64_t, rounded);
  const double x = (4.0 * turn - (rounded - magic)) * 1.57079632679489662, q = x * x;
  double c = -1.0 / 87178291200.0, s = 1.0 / 6227020800.0;
  c = c * q + 1.0 / 479001600.0;
  s = s * q - 1.0 / 39916800.0;
  c = c * q - 1.0 / 3628800.0;
  s = s * q + 1.0 / 362880.0;
  c = c * q + 1.0 / 40320.0;
  s = s * q - 1.0 / 5040.0;
  c = c * q - 1.0 / 720.0;
  s = s * q + 1.0 / 120.0;
  c = c * q + 1.0 / 24.0;
  s = s * q - 1.0 / 6.0;
  c = c * q - 0.5;
  const double sine = s * q * x + x, cosine = c * q + 1.0;
  const bool swapped = (quadrant & 1) != 0;
  const double along = swapped ? sine : cosine, across = swapped ? cosine : sine;
  const bool left = ((quadrant + 1) & 2) != 0, down = (quadrant & 2) != 0;
  return {left ? -along : along, down ? -across : across};
}

[[gnu::always_inline]] inline double to_double(uint32_t word) {
  return static_cast<double>(static_cast<int32_t>(word ^ 0x80000000u)) + 0x1p31;
}

// Box and Muller 1958: words 2i and 2i + 1 become two normals.
template <int64_t count>
void normals(const uint32_t* words, float deviation, float* to) {
  const auto scale = static_cast<double>(deviation);
#pragma omp simd
  for (int64_t i = 0; i < count / 2; ++i) {
    const double unit = (to_double(words[2 * i]) + 1.0) * 0x1p-32;
    const double radius = __builtin_sqrt(-2.0 * natural_log(unit)) * scale;
    const Direction towards = direction(to_double(words[2 * i + 1]) * 0x1p-32);
    to[2 * i] = static_cast<float>(radius * towards.cosine);
    to[2 * i + 1] = static_cast<float>(radius * towards.sine);
  }
}

void fill_normal(const FillNormalCall& call) {
  constexpr int64_t counters = 64, words_at_once = 4 * counters;
  const auto skipped = static_cast<int64_t>(call.first_index % 4);
  const uint64_t first_counter = call.first_index / 4;
  const int64_t total = call.count + skipped, runs = blocks_of(total, words_at_once);
  for_each(runs, call.threads, [&](int64_t run) {
    alignas(64) uint32_t words[words_at_once];
    alignas(64) float values[words_at_once];
    philox_words<counters>({call.key_low, call.key_high},
                           first_counter + static_cast<uint64_t>(run * counters), 0, words);
    normals<words_at_once>(words, call.deviation, values);
    const int64_t first = run * words_at_once - skipped;
    const int64_t begin = first < 0 ? -first : 0, end = smaller(words_at_once, call.count - first);
    for (int64_t i = begin; i < end; ++i) call.x[first + i] = values[i];
  });
}

}  // namespace

RandomKernels random_kernels() {
  return {.fill_normal = fill_normal};
}

}  // namespace rankine::RANKINE_ISA
