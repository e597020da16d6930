#include "base/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace rankine {
namespace {

constexpr int digit_bits = 32;
constexpr int lowest_exponent = -1074;  // of the last bit of the smallest double

// Digits in [0, 2^32); returns false when the number is negative.
bool normalise(std::span<int64_t> digits) {
  int64_t carry = 0;
  for (int64_t& digit : digits) {
    const int64_t sum = digit + carry;
    digit = sum & 0xffffffff;
    carry = sum >> digit_bits;
  }
  return carry >= 0;
}

}  // namespace

ExactSum::ExactSum(std::span<const int64_t, size> parts) {
  std::ranges::copy(parts, parts_.begin());
}

void ExactSum::add(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t exponent = bits >> 52 & 0x7ff, fraction = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 0x7ff) {
    ++parts_[digits];
    return;
  }
  const uint64_t position = exponent == 0 ? 0 : exponent - 1;
  const uint64_t mantissa = exponent == 0 ? fraction : fraction | uint64_t{1} << 52;
  const auto shift = static_cast<int>(position % digit_bits);
  const int64_t sign = x < 0 ? -1 : 1;
  // Up to 84 bits: the low 64 and what the shift pushes out of them.
  const uint64_t low = mantissa << shift, high = shift == 0 ? 0 : mantissa >> (64 - shift);
  int64_t* digit = parts_.data() + position / digit_bits;
  digit[0] += sign * static_cast<int64_t>(low & 0xffffffff);
  digit[1] += sign * static_cast<int64_t>(low >> digit_bits);
  digit[2] += sign * static_cast<int64_t>(high);
}

void ExactSum::add(const ExactSum& other) {
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i] += other.parts_[i];
}

double ExactSum::value() const {
  if (parts_[digits] != 0) return std::numeric_limits<double>::quiet_NaN();
  std::array<int64_t, size> number = parts_;
  const std::span<int64_t> all(number.data(), digits);
  const bool positive = normalise(all);
  if (!positive) {
    for (int i = 0; i < digits; ++i) all[static_cast<size_t>(i)] = -parts_[static_cast<size_t>(i)];
    normalise(all);
  }
  int top = digits - 1;
  while (top > 0 && number[static_cast<size_t>(top)] == 0) --top;
  const auto digit = [&](int i) {
    return i < 0 ? 0 : static_cast<uint64_t>(number[static_cast<size_t>(i)]);
  };
  if (digit(top) == 0) return 0;
  // The leading 64 bits, the last of them set when anything non-zero follows.
  const int zeros = std::countl_zero(digit(top)) - digit_bits;
  uint64_t lead = digit(top) << digit_bits | digit(top - 1);
  bool rest = false;
  if (zeros > 0) lead = lead << zeros | digit(top - 2) >> (digit_bits - zeros);
  rest = (digit(top - 2) << zeros & 0xffffffff) != 0;
  for (int i = top - 3; i >= 0 && !rest; --i) rest = digit(i) != 0;
  lead |= rest ? 1 : 0;
  const int exponent = (top - 1) * digit_bits - zeros + lowest_exponent;
  const double magnitude = std::ldexp(static_cast<double>(lead), exponent);
  return positive ? magnitude : -magnitude;
}

}  // namespace rankine
