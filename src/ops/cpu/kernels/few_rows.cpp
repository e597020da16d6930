#include "ops/cpu/kernels/on_team.h"
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
  [[gnu::always_inline]] static Vector read(const F16* from) { return load(from); }
};

// The same of fewer elements; those that are missing are zero.
template <class S>
[[gnu::always_inline]] inline typename Step<S>::Vector read_part(const S* from, int64_t count) {
  S part[Step<S>::elements] = {};
  __builtin_memcpy(part, from, static_cast<size_t>(count) * sizeof(S));
  return Step<S>::read(part);
}

// How many rows share one reading of a weight, and how many outputs are finished at once.
constexpr int most_rows = vector_bytes == 64 ? 4 : 2;
constexpr int block = lanes;
// The matrix is read from several places at a time, each a stream of its own, since memory gives
// more to several: from four while sums of so few rows leave registers for it, otherwise from two.
constexpr int few_rows = vector_bytes == 64 ? 2 : 1;

// sums[p][r][0] = the products of R rows with one row of weights at each of P places, not yet added
// up over the lanes: two chains of sums in the same order, whatever R and P are.
template <class S, int R, int P>
[[gnu::always_inline]] inline void multiply(const S* x, const S* w, int64_t apart, int64_t inputs,
                                            float* sums) {
  using Vector = typename Step<S>::Vector;
  constexpr int64_t n = Step<S>::elements;
  Floats chains[2][R][P] = {};
  const auto step = [&](Floats(&into)[R][P], const auto& read) {
    Vector weights[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) weights[p] = read(w + p * apart);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Vector row = read(x + r * inputs);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) into[r][p] = Step<S>::add(into[r][p], row, weights[p]);
    }
  };
  int64_t i = 0;
  for (; i + 2 * n <= inputs; i += 2 * n) {
    // Hardware follows streams too late that begin and end with a matrix of this size. From fewer
    // places, more has to be on its way from each.
    for (int p = 0; p < P; ++p)
      for (size_t b = 0; b < 2 * n * sizeof(S); b += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(w + p * apart + 4 / P * inputs + i) + b);
    step(chains[0], [i](const S* from) { return Step<S>::read(from + i); });
    step(chains[1], [i](const S* from) { return Step<S>::read(from + i + n); });
  }
  const auto part = [&](Floats(&into)[R][P]) {
    const int64_t count = inputs - i < n ? inputs - i : n;
    step(into, [i, count](const S* from) { return read_part(from + i, count); });
    i += n;
  };
  if (i < inputs) part(chains[0]);
  if (i < inputs) part(chains[1]);
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
      store(sums + (p * R + r) * block * lanes, chains[0][r][p] + chains[1][r][p]);
}

// y of R rows and up to a block of outputs from `first` on, and as many at each further place.
template <class S, int R, int P>
void block_of_rows(const FewRowsCall& call, int64_t row, int64_t first, int64_t apart,
                   int64_t count) {
  alignas(vector_bytes) float sums[P * R * block * lanes], columns[block * lanes];
  const S* x = static_cast<const S*>(call.x) + row * call.inputs;
  const S* w = static_cast<const S*>(call.w) + first * call.inputs;
  for (int64_t o = 0; o < count; ++o)
    multiply<S, R, P>(x, w + o * call.inputs, apart * call.inputs, call.inputs, sums + o * lanes);
  for (int p = 0; p < P; ++p)
    for (int r = 0; r < R; ++r) {
      transpose_square(sums + (p * R + r) * block * lanes, columns, lanes);
      Floats values = load(columns);
      for (int lane = 1; lane < lanes; ++lane) values += load(columns + lane * lanes);
      alignas(vector_bytes) float out[block];
      store(out, values);
      const int64_t output = first + p * apart;
      S* y = static_cast<S*>(call.y) + (row + r) * call.outputs + output;
      const S* bias = static_cast<const S*>(call.bias) + output;
      for (int64_t o = 0; o < count; ++o)
        down(y[o], call.bias != nullptr ? out[o] + up(bias[o]) : out[o]);
    }
}

template <class S, int P, int R = (P > 2 ? few_rows : most_rows)>
void all_rows(const FewRowsCall& call, int64_t row, int64_t first, int64_t apart, int64_t count) {
  for (; call.rows - row >= R; row += R) block_of_rows<S, R, P>(call, row, first, apart, count);
  if constexpr (R > 1)
    if (row < call.rows) all_rows<S, P, R - 1>(call, row, first, apart, count);
}

// The outputs [begin, end), a multiple of a block but for the last ones, read from P places.
template <class S, int P>
void outputs(const FewRowsCall& call, int64_t begin, int64_t end) {
  const int64_t apart = (end - begin) / (P * block) * block;
  for (int64_t o = 0; o < apart; o += block) all_rows<S, P>(call, 0, begin + o, apart, block);
  for (int64_t o = begin + P * apart; o < end; o += block)
    all_rows<S, 1>(call, 0, o, 0, end - o < block ? end - o : block);
}

template <class S>
void linear(const FewRowsCall& call) {
  const int64_t blocks = (call.outputs + block - 1) / block;
  const auto output_at = [&](double share) {
    const int64_t output = at_share(blocks, share) * block;
    return output < call.outputs ? output : call.outputs;
  };
  on_team(call.team, false, [&](TeamPart part) {
    if (call.rows <= few_rows)
      outputs<S, 4>(call, output_at(part.from), output_at(part.to));
    else
      outputs<S, 2>(call, output_at(part.from), output_at(part.to));
  });
}

}  // namespace

FewRowsKernels few_rows_kernels() {
  return {.linear = {linear<float>, linear<Bf16>, linear<F16>}};
}

}  // namespace rankine::RANKINE_ISA
