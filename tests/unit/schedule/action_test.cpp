#include "schedule/action.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace rankine {
namespace {

TEST(Action, ProgramsPrintAndParseBack) {
  const Program program = accumulation_program(3);
  EXPECT_EQ(to_string(program), "0F0 0B0 0F1 0B1 0F2 0B2 0U");
  EXPECT_EQ(parse_program(to_string(program)), program);
  EXPECT_EQ(parse_program("  12F7\n0U "),
            (Program{{12, ActionKind::forward, 7}, {0, ActionKind::update, 0}}));
}

TEST(Action, WordsThatAreNoActionsAreNamed) {
  for (const char* word : {"F", "0F", "F0", "0X1", "0F-1", "0F1x", "0U3", "1.5F0"}) {
    try {
      parse_program(word);
      FAIL() << word << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  }
}

TEST(Action, AccumulationHoldsOneMicroBatch) {
  for (int micros = 1; micros < 9; ++micros) {
    const Program program = accumulation_program(micros);
    EXPECT_NO_THROW(check(program, micros));
    EXPECT_EQ(peak_in_flight(program), 1);
  }
  EXPECT_EQ(peak_in_flight(parse_program("0F0 0F1 0F2 0B2 0B1 0B0 0U")), 3);
}

TEST(Action, EveryMutationOfAProgramIsReported) {
  const Program good = accumulation_program(4);
  for (size_t i = 0; i < good.size(); ++i) {
    Program dropped = good, doubled = good;
    dropped.erase(dropped.begin() + static_cast<std::ptrdiff_t>(i));
    doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(i), good[i]);
    EXPECT_THROW(check(dropped, 4), Error) << "without action " << i;
    EXPECT_THROW(check(doubled, 4), Error) << "with action " << i << " twice";
  }
  for (size_t i = 0; i + 1 < good.size(); i += 2) {
    Program swapped = good;
    std::swap(swapped[i], swapped[i + 1]);
    EXPECT_THROW(check(swapped, 4), Error) << "actions " << i << " and the next swapped";
  }
}

}  // namespace
}  // namespace rankine
