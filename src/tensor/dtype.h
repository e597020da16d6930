#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

// Element types and the two 16-bit float formats.
namespace rankine {

enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, i16, i8, u8, boolean };

constexpr int64_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::i16:
      return 2;
    default:
      return 1;
  }
}

// "f32", "bf16", ...
std::string_view dtype_name(DType dtype);

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

inline float to_float(float x) {
  return x;
}
inline float to_float(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}
float to_float(F16 x);

template <class T>
T from_float(float x);
template <>
inline float from_float<float>(float x) {
  return x;
}
// Round to nearest even; a NaN stays a quiet NaN.
template <>
inline Bf16 from_float<Bf16>(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
template <>
F16 from_float<F16>(float x);

}  // namespace rankine
