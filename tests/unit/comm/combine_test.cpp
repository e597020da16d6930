#include "comm/combine.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace rankine {
namespace {

float float_of(Bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

// The nearer of the two neighbours, the even one when both are as near; by comparison alone.
bool is_rounded(Bf16 sum, float exact) {
  if (std::isnan(exact)) return std::isnan(float_of(sum)) && (sum.bits & 0x40u) != 0;
  const uint32_t bits = std::bit_cast<uint32_t>(exact);
  const uint32_t below = bits >> 16, rest = bits & 0xffffu;
  const bool up = rest > 0x8000u || (rest == 0x8000u && (below & 1u) != 0);
  return sum.bits == below + (up ? 1 : 0);
}

// Of every kind: zeros, the smallest, ties, infinities, NaNs that signal and that do not.
std::vector<Bf16> numbers(size_t count, uint32_t seed) {
  constexpr uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x3f80, 0xbf80,
                                  0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0xff81, 0x7fc0, 0xffff};
  std::mt19937 random(seed);
  std::vector<Bf16> out(count);
  for (Bf16& x : out) {
    const auto any = static_cast<uint16_t>(random());
    // Close exponents, so that bits are rounded away.
    const auto close = static_cast<uint16_t>((any & 0x83ffu) | 0x3c00u);
    const uint32_t kind = random() % 4;
    x.bits = kind == 0 ? special[any % 16] : kind == 1 ? any : close;
  }
  return out;
}

TEST(FoldPair, SumsOfBf16AreRoundedToNearestEvenAndNaNsAreQuiet) {
  constexpr uint32_t seed = 11;
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{63}, size_t{200'003}}) {
    const std::vector<Bf16> a = numbers(count, seed), b = numbers(count, seed + 1);
    std::vector<Bf16> out(count + 1, Bf16{0x1234}), also = out;
    combine_of(DType::bf16, Reduction::sum)
        .fold_pair(a.data(), b.data(), out.data(), also.data(), static_cast<int64_t>(count));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(is_rounded(out[i], float_of(a[i]) + float_of(b[i])))
          << "seed " << seed << ", " << i << " of " << count << ": " << a[i].bits << " + "
          << b[i].bits << " = " << out[i].bits;
      ASSERT_EQ(also[i].bits, out[i].bits) << i << " of " << count;
    }
    EXPECT_EQ(out[count].bits, 0x1234) << count;
    EXPECT_EQ(also[count].bits, 0x1234) << count;
  }
}

TEST(FoldPair, MayWriteOverWhatItReads) {
  for (const DType dtype : {DType::bf16, DType::f32}) {
    constexpr size_t count = 1003;
    const size_t bytes = count * static_cast<size_t>(dtype_bytes(dtype));
    std::vector<std::byte> a(bytes), b(bytes), out(bytes);
    for (size_t i = 0; i < bytes; ++i)
      a[i] = static_cast<std::byte>(i % 63), b[i] = static_cast<std::byte>(i % 61);
    const Combine& combine = combine_of(dtype, Reduction::sum);
    combine.fold_pair(a.data(), b.data(), out.data(), out.data(), count);
    combine.fold_pair(a.data(), b.data(), a.data(), a.data(), count);
    EXPECT_EQ(a, out) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace rankine
