#include "state/pending_update.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "base/error.h"
#include "support/errors.h"

namespace rankine {
namespace {

using test::error_of;

TEST(PendingUpdate, BlocksAreFreeOneByOne) {
  PendingUpdate pending;
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> allowed{0}, done{0};
    pending.start(3, [&](const PendingUpdate::Read& read) {
      for (size_t block = 3; block-- > 0;) {
        while (allowed == 0) std::this_thread::yield();
        --allowed;
        read(block);
        ++done;
      }
    });
    for (size_t block = 3; block-- > 0;) {
      ++allowed;
      pending.wait_read(block);
      EXPECT_GE(done + 1, static_cast<int>(3 - block)) << round;
    }
    pending.finish();
    EXPECT_EQ(done, 3);
    pending.wait_read(0);  // of nothing under way
  }
}

TEST(PendingUpdate, SaysWhatWentWrong) {
  PendingUpdate pending;
  pending.start(2, [](const PendingUpdate::Read& read) {
    read(1);
    fail(ErrorKind::resource, "the disk is full");
  });
  EXPECT_EQ(error_of([&] { pending.wait_read(0); }).kind(), ErrorKind::resource);
  EXPECT_EQ(std::string(error_of([&] { pending.finish(); }).what()), "the disk is full");
}

TEST(PendingUpdate, IsDoneBeforeItGoes) {
  std::atomic<bool> done{false};
  {
    PendingUpdate pending;
    pending.start(1, [&](const PendingUpdate::Read&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      done = true;
    });
  }
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace rankine
