#include "launch/processors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/error.h"

namespace rankine {
namespace {

using Lists = std::vector<std::vector<int>>;

std::vector<int> numbers(int first, int end) {
  std::vector<int> out;
  for (int i = first; i < end; ++i) out.push_back(i);
  return out;
}

TEST(ProcessorShare, SharesTileTheProcessors) {
  for (int processors = 1; processors <= 24; ++processors)
    for (int ranks = 1; ranks <= processors; ++ranks) {
      const std::vector<int> all = numbers(3, 3 + processors);
      const Lists allowed(static_cast<size_t>(ranks), all);
      std::vector<int> tiled;
      size_t least = all.size(), most = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const std::vector<int> share = processor_share(rank, allowed);
        tiled.insert(tiled.end(), share.begin(), share.end());
        least = std::min(least, share.size());
        most = std::max(most, share.size());
      }
      EXPECT_EQ(tiled, all) << processors << " processors, " << ranks << " ranks";
      EXPECT_GE(least, 1u);
      EXPECT_LE(most, least + 1) << processors << " processors, " << ranks << " ranks";
    }
}

TEST(ProcessorShare, MoreRanksThanProcessorsTakeTurns) {
  const Lists allowed(5, {4, 9});
  std::vector<int> taken;
  for (int rank = 0; rank < 5; ++rank) {
    const std::vector<int> share = processor_share(rank, allowed);
    ASSERT_EQ(share.size(), 1u);
    taken.push_back(share[0]);
  }
  EXPECT_EQ(taken, (std::vector{4, 9, 4, 9, 4}));
}

TEST(ProcessorShare, RanksBoundApartByTheLauncherKeepWhatTheyHave) {
  const Lists apart = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  EXPECT_EQ(processor_share(0, apart), apart[0]);
  EXPECT_EQ(processor_share(1, apart), apart[1]);
  // Two sockets, ranks dealt out in turn.
  const Lists sockets = {{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}};
  EXPECT_EQ(processor_share(0, sockets), (std::vector{0, 1}));
  EXPECT_EQ(processor_share(1, sockets), (std::vector{4, 5}));
  EXPECT_EQ(processor_share(2, sockets), (std::vector{2, 3}));
  EXPECT_EQ(processor_share(3, sockets), (std::vector{6, 7}));
}

TEST(ProcessorShare, OneRankTakesWhatIsAllowed) {
  const std::vector<int> allowed = allowed_processors();
  EXPECT_FALSE(allowed.empty());
  EXPECT_EQ(processor_share(0, 1), allowed);
}

TEST(PinTo, ConfinesTheThreadAndThoseItStarts) {
  std::vector<int> seen;
  const std::vector<int> all = allowed_processors(), last = {all.back()};
  std::thread([&] {
    pin_to(last);
    std::thread([&] { seen = allowed_processors(); }).join();
  }).join();
  EXPECT_EQ(seen, last);
  EXPECT_EQ(allowed_processors(), all);
}

TEST(PinTo, WhatCannotBeIsRefused) {
  EXPECT_THROW(pin_to({}), Error);
  EXPECT_THROW(pin_to({1'000'000}), Error);
  EXPECT_THROW(pin_to({-1}), Error);
}

TEST(ThreadsFor, TheWishThenTheEnvironmentThenTheShare) {
  const std::vector<int> share = {2, 3, 4};
  EXPECT_EQ(threads_for(7, "5", share), 7);
  EXPECT_EQ(threads_for(0, "5", share), 5);
  EXPECT_EQ(threads_for(0, "4,2", share), 4);
  EXPECT_EQ(threads_for(0, nullptr, share), 3);
  for (const char* nonsense : {"", "many", "0", "-2", "99999999"})
    EXPECT_EQ(threads_for(0, nonsense, share), 3) << nonsense;
}

}  // namespace
}  // namespace rankine
