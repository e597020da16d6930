#include "base/random.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(philox({0, 0}, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U}, ~uint64_t{0}, ~uint64_t{0}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0xa4093822, 0x299f31d0}, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, KeysDependOnSeedAndPurpose) {
  const RandomKey a = random_key(1, "init"), b = random_key(2, "init"), c = random_key(1, "order");
  EXPECT_NE(philox(a, 0), philox(b, 0));
  EXPECT_NE(philox(a, 0), philox(c, 0));
}

TEST(Random, UnitFloatsStayBelowOne) {
  EXPECT_EQ(unit_float(0), 0.0F);
  EXPECT_LT(unit_float(~0U), 1.0F);
}

}  // namespace
}  // namespace rankine
