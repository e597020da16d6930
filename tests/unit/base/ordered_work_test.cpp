#include "base/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "base/error.h"
#include "support/errors.h"

namespace rankine {
namespace {

TEST(OrderedWork, FinishesInOrderWhateverTheThreads) {
  for (const int threads : {1, 2, 7}) {
    int next = 0;
    std::vector<int> finished;
    run_in_order<int, int>(threads, {.take =
                                         [&](int& item) {
                                           item = next;
                                           return next++ < 500;
                                         },
                                     .work = [](int& item, int) { return 3 * item; },
                                     .finish = [&](int& result) { finished.push_back(result); }});
    ASSERT_EQ(finished.size(), 500U) << threads;
    for (int i = 0; i < 500; ++i) EXPECT_EQ(finished[static_cast<size_t>(i)], 3 * i) << threads;
  }
}

// Which step of which item fails; the first one counts.
TEST(OrderedWork, TheFirstItemsFaultIsThrownAndNothingBehindItFinished) {
  for (const int threads : {1, 2, 5})
    for (const char* step : {"take", "work", "finish"}) {
      int next = 0;
      std::vector<int> finished;
      const auto fault = [&](const char* where, int item) {
        require(std::string_view(step) != where || (item != 20 && item != 22), ErrorKind::data,
                "{} {}", where, item);
      };
      const std::string message = test::message_of([&] {
        run_in_order<int, int>(threads, {.take =
                                             [&](int& item) {
                                               item = next++;
                                               fault("take", item);
                                               return item < 100;
                                             },
                                         .work =
                                             [&](int& item, int) {
                                               fault("work", item);
                                               return item;
                                             },
                                         .finish =
                                             [&](int& item) {
                                               fault("finish", item);
                                               finished.push_back(item);
                                             }});
      });
      EXPECT_EQ(message, std::string(step) + " 20") << threads;
      EXPECT_EQ(finished.size(), 20U) << step << " with " << threads;
    }
}

}  // namespace
}  // namespace rankine
