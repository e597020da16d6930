#include "tensor/finite.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {
namespace {

template <class T>
T bits_at(const void* data, int64_t index) {
  T bits;
  std::memcpy(&bits, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return bits;
}

// A value is not finite when all bits of its exponent are set. Counting without a branch becomes
// SIMD; only blocks that hold one are looked at again.
template <class T>
NonFinite find(const void* data, int64_t count, T exponent) {
  constexpr int64_t block = 2048;
  NonFinite out;
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t end = std::min(count, begin + block);
    T bad = 0;
    for (int64_t i = begin; i < end; ++i)
      bad = static_cast<T>(bad + ((bits_at<T>(data, i) & exponent) == exponent ? 1 : 0));
    if (bad == 0) continue;
    out.count += static_cast<int64_t>(bad);
    for (int64_t i = begin; out.first < 0; ++i)
      if ((bits_at<T>(data, i) & exponent) == exponent) out.first = i;
  }
  return out;
}

}  // namespace

NonFinite find_non_finite(const void* data, DType dtype, int64_t count) {
  NonFinite out;
  switch (dtype) {
    case DType::f32:
      out = find<uint32_t>(data, count, 0x7f800000u);
      if (out.first >= 0) out.value = static_cast<double>(bits_at<float>(data, out.first));
      break;
    case DType::bf16:
      out = find<uint16_t>(data, count, 0x7f80u);
      if (out.first >= 0)
        out.value = static_cast<double>(to_float(Bf16{bits_at<uint16_t>(data, out.first)}));
      break;
    case DType::f16:
      out = find<uint16_t>(data, count, 0x7c00u);
      if (out.first >= 0)
        out.value = static_cast<double>(to_float(F16{bits_at<uint16_t>(data, out.first)}));
      break;
    default:
      expect(dtype == DType::f64, "floating-point values");
      out = find<uint64_t>(data, count, 0x7ff0000000000000u);
      if (out.first >= 0) out.value = bits_at<double>(data, out.first);
  }
  return out;
}

}  // namespace rankine
