#include "io/tier_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "support/errors.h"

namespace rankine {
namespace {

using test::error_of;

TEST(TierMemory, CopiesBesideTheCaller) {
  std::vector<uint8_t> space(20 << 20), there(10 << 20), back(10 << 20);
  std::iota(there.begin(), there.end(), uint8_t{0});
  TierMemory tier({space.data(), DType::u8, Shape{static_cast<int64_t>(space.size())}});
  TierWork write = tier.start_write(7 << 20, there.data(), there.size());
  write.wait();
  EXPECT_TRUE(write.done());
  EXPECT_EQ(std::memcmp(space.data() + (7 << 20), there.data(), there.size()), 0);
  std::vector<TierWork> reads;  // odd pieces, all under way at once
  for (size_t at = 0; at < back.size(); at += 999'983)
    reads.push_back(tier.start_read((7 << 20) + at, back.data() + at,
                                    std::min<size_t>(999'983, back.size() - at)));
  for (TierWork& read : reads) read.wait();
  EXPECT_EQ(back, there);
  EXPECT_TRUE(tier.start_read(0, back.data(), 0).done());
}

TEST(TierMemory, RefusesWhatLiesOutside) {
  std::vector<uint8_t> space(100), other(200);
  TierMemory tier({space.data(), DType::u8, Shape{100}});
  EXPECT_EQ(error_of([&] { tier.start_read(0, other.data(), 101); }).kind(), ErrorKind::internal);
  EXPECT_EQ(error_of([&] { tier.start_write(101, other.data(), 0); }).kind(), ErrorKind::internal);
}

TEST(TierMemory, WaitsForCopiesAtItsEnd) {
  std::vector<uint8_t> space(8 << 20), source(8 << 20, 3);
  TierWork work;
  {
    TierMemory tier({space.data(), DType::u8, Shape{8 << 20}});
    work = tier.start_write(0, source.data(), source.size());
  }
  EXPECT_TRUE(work.done());
  EXPECT_EQ(space, source);
}

}  // namespace
}  // namespace rankine
