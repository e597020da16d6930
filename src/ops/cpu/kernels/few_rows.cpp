#include <immintrin.h>

#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/vectors.h"

// Products of a few rows with a large matrix: the matrix is read once, from memory, and everything
// else has to keep up with that.
namespace rankine::RANKINE_ISA {
namespace {

// What one step multiplies: a register's worth of elements and their sums.
template <class S>
struct Step;

template <>
struct Step<float> {
  using Vector = Floats;
  static constexpr int64_t elements = lanes;
  [[gnu::always_inline]] static Floats add(Floats sums, Vector a, Vector b) { return sums + a * b; }
  [[gnu::always_inline]] static Vector read(const float* from) { return load(from); }
};

template <>
struct Step<Bf16> {
  using Vector = Words;
  static constexpr int64_t elements = 2 * lanes;
  [[gnu::always_inline]] static Floats add(Floats sums, Vector a, Vector b) {
    return dot_pairs(sums, a, b);
  }
  [[gnu::always_inline]] static Vector read(const Bf16* from) {
    return load(reinterpret_cast<const uint32_t*>(from));
  }
};

template <>
struct Step<F16> {
  using Vector = Floats;
  static constexpr int64_t elements = lanes;
  [[gnu::always_inline]] static Floats add(Floats sums, Vector a, Vector b) { return sums + a * b; }
  [[gnu::always_inline]] static Vector read(const F16* from) {
#if defined(__AVX512F__)
    return (Floats)_mm512_maskz_cvtph_ps(
        0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#else
    return (Floats)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#endif
  }
};

// The same of fewer elements; those that are missing are zero.
template <class S>
[[gnu::always_inline]] inline typename Step<S>::Vector read_part(const S* from, int64_t count) {
  S part[Step<S>::elements] = {};
  __builtin_memcpy(part, from, static_cast<size_t>(count) * sizeof(S));
  return Step<S>::read(part);
}

// How many rows share one reading of a weight, and how many outputs are summed up at once.
constexpr int most_rows = vector_bytes == 64 ? 4 : 2;
constexpr int block = lanes;

// sums[r][o] = the products of R rows with O rows of weights, not yet added up over the lanes: two
// chains of sums in the same order, whatever R and O are.
template <class S, int R, int O>
[[gnu::always_inline]] inline void multiply(const S* x, const S* w, int64_t inputs, float* sums) {
  using Vector = typename Step<S>::Vector;
  constexpr int64_t n = Step<S>::elements;
  Floats chains[2][R][O] = {};
  const auto step = [&](Floats(&into)[R][O], const auto& read) {
    Vector weights[O];
#pragma GCC unroll 4
    for (int o = 0; o < O; ++o) weights[o] = read(w + o * inputs);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Vector row = read(x + r * inputs);
#pragma GCC unroll 4
      for (int o = 0; o < O; ++o) into[r][o] = Step<S>::add(into[r][o], row, weights[o]);
    }
  };
  int64_t i = 0;
  for (; i + 2 * n <= inputs; i += 2 * n) {
    if constexpr (O > 1) {  // hardware follows several short streams too late
      for (int o = 0; o < O; ++o)
        for (size_t b = 0; b < 2 * n * sizeof(S); b += 64)
          __builtin_prefetch(reinterpret_cast<const char*>(w + (O + o) * inputs + i) + b);
    }
    step(chains[0], [i](const S* from) { return Step<S>::read(from + i); });
    step(chains[1], [i](const S* from) { return Step<S>::read(from + i + n); });
  }
  const auto part = [&](Floats(&into)[R][O]) {
    const int64_t count = inputs - i < n ? inputs - i : n;
    step(into, [i, count](const S* from) { return read_part(from + i, count); });
    i += n;
  };
  if (i < inputs) part(chains[0]);
  if (i < inputs) part(chains[1]);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int o = 0; o < O; ++o)
      store(sums + (r * block + o) * lanes, chains[0][r][o] + chains[1][r][o]);
}

// y of R rows and up to a block of outputs.
template <class S, int R>
void block_of_rows(const FewRowsCall& call, int64_t row, int64_t first, int64_t count) {
  // One or two rows leave little but the reading of weights, best done in one go.
  constexpr int outputs = R <= 2 ? 1 : 2;
  alignas(vector_bytes) float sums[R * block * lanes], columns[block * lanes];
  const S* x = static_cast<const S*>(call.x) + row * call.inputs;
  const S* w = static_cast<const S*>(call.w) + first * call.inputs;
  int64_t done = 0;
  for (; done + outputs <= count; done += outputs)
    multiply<S, R, outputs>(x, w + done * call.inputs, call.inputs, sums + done * lanes);
  if (done < count) multiply<S, R, 1>(x, w + done * call.inputs, call.inputs, sums + done * lanes);
  for (int r = 0; r < R; ++r) {
    transpose_square(sums + r * block * lanes, columns, lanes);
    Floats values = load(columns);
    for (int lane = 1; lane < lanes; ++lane) values += load(columns + lane * lanes);
    alignas(vector_bytes) float out[block];
    store(out, values);
    S* y = static_cast<S*>(call.y) + (row + r) * call.outputs + first;
    const S* bias = static_cast<const S*>(call.bias) + first;
    for (int64_t o = 0; o < count; ++o)
      down(y[o], call.bias != nullptr ? out[o] + up(bias[o]) : out[o]);
  }
}

template <class S, int R = most_rows>
void rows_of_block(const FewRowsCall& call, int64_t row, int64_t first, int64_t count) {
  if (call.rows - row >= R) {
    block_of_rows<S, R>(call, row, first, count);
    row += R;
  }
  if (row == call.rows) return;
  if constexpr (R == most_rows)
    if (call.rows - row >= R) return rows_of_block<S, R>(call, row, first, count);
  if constexpr (R > 1) rows_of_block<S, R - 1>(call, row, first, count);
}

template <class S>
void linear(const FewRowsCall& call) {
  const int64_t blocks = (call.outputs + block - 1) / block;
#pragma omp parallel for schedule(static) num_threads(call.threads)
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first = b * block, left = call.outputs - first;
    rows_of_block<S>(call, 0, first, left < block ? left : block);
  }
}

}  // namespace

FewRowsKernels few_rows_kernels() {
  return {.linear = {linear<float>, linear<Bf16>, linear<F16>}};
}

}  // namespace rankine::RANKINE_ISA
