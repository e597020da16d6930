#include "comm/combine.h"

#include <immintrin.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "base/error.h"

namespace rankine {
namespace {

// Every loop exists twice, for AVX2 and for any x86-64, chosen at run time.
struct Plus {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Larger {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};

template <class Wire, class Sum>
[[gnu::always_inline]] inline Sum up(Wire x) {
  if constexpr (std::is_same_v<Wire, Sum>)
    return x;
  else if constexpr (std::is_same_v<Wire, Bf16>)
    return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
  else
    return to_float(x);
}

// Without a branch, so that loops vectorise.
[[gnu::always_inline]] inline void round_to(Bf16& to, float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const uint32_t kept = (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : rounded;
  to.bits = static_cast<uint16_t>(kept >> 16);
}

template <class Wire, class Sum>
[[gnu::always_inline]] inline void down(Wire& to, Sum x) {
  if constexpr (std::is_same_v<Wire, Sum>)
    to = x;
  else if constexpr (std::is_same_v<Wire, Bf16>)
    round_to(to, x);
  else
    to = from_float<Wire>(x);
}

// As round_to, of eight; a number's upper half is its result, its lower half anything.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i rounded(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(up), _mm256_castsi256_ps(quiet),
                                              _mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}

// Sums of bf16: those at even places and those at odd ones become f32 where they are, without being
// moved to other lanes. Returns how many of the n it has summed.
[[gnu::target("avx2")]] int64_t add_bf16(const Bf16* a, const Bf16* b, Bf16* out, Bf16* also,
                                         int64_t n) {
  constexpr int64_t vector = 16;
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  int64_t i = 0;
  for (; i + vector <= n; i += vector) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
    const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i));
    const __m256i even = rounded(_mm256_add_ps(_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)),
                                               _mm256_castsi256_ps(_mm256_slli_epi32(y, 16))));
    const __m256i odd = rounded(_mm256_add_ps(_mm256_castsi256_ps(_mm256_and_si256(x, high)),
                                              _mm256_castsi256_ps(_mm256_and_si256(y, high))));
    const __m256i sum = _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), sum);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(also + i), sum);
  }
  return i;
}

template <class Op, class Wire, class Sum>
struct Loops {
  [[gnu::always_inline]] static inline void widen_body(const void* in, void* out, int64_t n) {
    const Wire* x = static_cast<const Wire*>(in);
    Sum* y = static_cast<Sum*>(out);
    for (int64_t i = 0; i < n; ++i) y[i] = up<Wire, Sum>(x[i]);
  }
  [[gnu::always_inline]] static inline void narrow_body(const void* in, void* out, int64_t n) {
    const Sum* x = static_cast<const Sum*>(in);
    Wire* y = static_cast<Wire*>(out);
    for (int64_t i = 0; i < n; ++i) down<Wire, Sum>(y[i], x[i]);
  }
  template <class In>
  [[gnu::always_inline]] static inline void fold_body(const void* a, const void* b, void* out,
                                                      int64_t n) {
    const Sum* x = static_cast<const Sum*>(a);
    const In* y = static_cast<const In*>(b);
    Sum* z = static_cast<Sum*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = Op::template apply<Sum>(x[i], up<In, Sum>(y[i]));
  }

  [[gnu::always_inline]] static inline void pair_body(const void* a, const void* b, void* out,
                                                      void* also, int64_t n) {
    const Wire* x = static_cast<const Wire*>(a);
    const Wire* y = static_cast<const Wire*>(b);
    Wire* z = static_cast<Wire*>(out);
    Wire* w = static_cast<Wire*>(also);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      Wire sum;
      down<Wire, Sum>(sum, Op::template apply<Sum>(up<Wire, Sum>(x[i]), up<Wire, Sum>(y[i])));
      z[i] = w[i] = sum;
    }
  }

  [[gnu::target("avx2")]] static void pair2(const void* a, const void* b, void* out, void* also,
                                            int64_t n) {
    int64_t done = 0;
    if constexpr (std::is_same_v<Wire, Bf16> && std::is_same_v<Op, Plus>)
      done = add_bf16(static_cast<const Wire*>(a), static_cast<const Wire*>(b),
                      static_cast<Wire*>(out), static_cast<Wire*>(also), n);
    pair_body(static_cast<const Wire*>(a) + done, static_cast<const Wire*>(b) + done,
              static_cast<Wire*>(out) + done, static_cast<Wire*>(also) + done, n - done);
  }
  static void pair1(const void* a, const void* b, void* out, void* also, int64_t n) {
    pair_body(a, b, out, also, n);
  }
  [[gnu::target("avx2")]] static void widen2(const void* in, void* out, int64_t n) {
    widen_body(in, out, n);
  }
  static void widen1(const void* in, void* out, int64_t n) {
    widen_body(in, out, n);
  }
  [[gnu::target("avx2")]] static void narrow2(const void* in, void* out, int64_t n) {
    narrow_body(in, out, n);
  }
  static void narrow1(const void* in, void* out, int64_t n) {
    narrow_body(in, out, n);
  }
  template <class In>
  [[gnu::target("avx2")]] static void fold2(const void* a, const void* b, void* out, int64_t n) {
    fold_body<In>(a, b, out, n);
  }
  template <class In>
  static void fold1(const void* a, const void* b, void* out, int64_t n) {
    fold_body<In>(a, b, out, n);
  }
};

template <class Wire, class Sum, class Op>
const Combine& combine(DType sum) {
  using L = Loops<Op, Wire, Sum>;
  static const Combine chosen = __builtin_cpu_supports("avx2") != 0
                                    ? Combine{sum,        L::widen2,
                                              L::narrow2, L::template fold2<Wire>,
                                              L::pair2,   L::template fold2<Sum>}
                                    : Combine{sum,        L::widen1,
                                              L::narrow1, L::template fold1<Wire>,
                                              L::pair1,   L::template fold1<Sum>};
  return chosen;
}

[[gnu::target("avx2")]] void stream(char* to, const char* from, size_t bytes) {
  constexpr size_t vector = 32;
  const size_t head = (vector - reinterpret_cast<uintptr_t>(to) % vector) % vector;
  if (bytes < 2 * vector) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, head);
  size_t i = head;
  for (; i + vector <= bytes; i += vector)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
  std::memcpy(to + i, from + i, bytes - i);
  _mm_sfence();
}

[[gnu::target("avx2")]] void copy(char* to, const char* from, size_t bytes) {
  constexpr size_t vector = 32;
  size_t i = 0;
  for (; i + 4 * vector <= bytes; i += 4 * vector) {
    __m256i values[4];
    for (size_t k = 0; k < 4; ++k)
      values[k] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i + k * vector));
    for (size_t k = 0; k < 4; ++k)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i + k * vector), values[k]);
  }
  std::memcpy(to + i, from + i, bytes - i);
}

template <class Op>
const Combine& combine_with(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return combine<float, float, Op>(DType::f32);
    case DType::bf16:
      return combine<Bf16, float, Op>(DType::f32);
    case DType::f16:
      return combine<F16, float, Op>(DType::f32);
    case DType::f64:
      return combine<double, double, Op>(DType::f64);
    case DType::i64:
      return combine<int64_t, int64_t, Op>(DType::i64);
    case DType::i32:
      return combine<int32_t, int32_t, Op>(DType::i32);
    default:
      fail(ErrorKind::internal, "no reduction of {}", dtype_name(dtype));
  }
}

}  // namespace

// The C library's copy of this size may be a string instruction that passes the caches by.
void copy_through_caches(void* to, const void* from, size_t bytes) {
  if (__builtin_cpu_supports("avx2") != 0)
    copy(static_cast<char*>(to), static_cast<const char*>(from), bytes);
  else
    std::memcpy(to, from, bytes);
}

void copy_past_caches(void* to, const void* from, size_t bytes) {
  if (__builtin_cpu_supports("avx2") != 0)
    stream(static_cast<char*>(to), static_cast<const char*>(from), bytes);
  else
    std::memcpy(to, from, bytes);
}

const Combine& combine_of(DType dtype, Reduction reduction) {
  return reduction == Reduction::sum ? combine_with<Plus>(dtype) : combine_with<Larger>(dtype);
}

}  // namespace rankine
