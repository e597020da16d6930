#include "schedule/action.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace rankine {
namespace {

TEST(Action, ProgramsPrintAndParseBack) {
  const Program program = accumulation_program(3);
  EXPECT_EQ(to_string(program), "0F0 0B0 0F1 0B1 0F2 0B2 0U");
  EXPECT_EQ(parse_program(to_string(program)), program);
  EXPECT_EQ(parse_program("  12F7\n0U "),
            (Program{{12, ActionKind::forward, 7}, {0, ActionKind::update}}));
}

TEST(Action, EveryKindPrintsAndParsesBack) {
  const std::pair<const char*, Action> cases[] = {
      {"0F3", {0, ActionKind::forward, 3}},
      {"1F3.12", {1, ActionKind::forward, 3, 12}},
      {"0B3", {0, ActionKind::backward, 3}},
      {"0B3.0", {0, ActionKind::backward, 3, 0}},
      {"5I3", {5, ActionKind::backward_input, 3}},
      {"5I3.7", {5, ActionKind::backward_input, 3, 7}},
      {"5W3", {5, ActionKind::backward_weight, 3}},
      {"5W3.7", {5, ActionKind::backward_weight, 3, 7}},
      {"2U", {2, ActionKind::update}},
      {"0GATHER.2", {0, ActionKind::gather, Action::none, 2}},
      {"0RELEASE.2", {0, ActionKind::release, Action::none, 2}},
      {"0REDUCE3.2", {0, ActionKind::reduce, 3, 2}},
      {"0REFRESH.10", {0, ActionKind::refresh, Action::none, 10}},
      {"0LOAD.2", {0, ActionKind::load, Action::none, 2}},
      {"0STORE3.2", {0, ActionKind::store, 3, 2}},
      {"0FETCH3.2", {0, ActionKind::fetch, 3, 2}},
      {"4SEND_F1", {4, ActionKind::send_activation, 1}},
      {"4RECV_F1", {4, ActionKind::receive_activation, 1}},
      {"4SEND_B1", {4, ActionKind::send_gradient, 1}},
      {"4RECV_B1", {4, ActionKind::receive_gradient, 1}}};
  for (const auto& [text, action] : cases) {
    EXPECT_EQ(to_string(action), text);
    EXPECT_EQ(parse_program(text), Program{action}) << text;
    EXPECT_TRUE(well_formed(action)) << text;
  }
}

TEST(Action, NumbersFitTheKind) {
  EXPECT_FALSE(well_formed({0, ActionKind::forward}));
  EXPECT_FALSE(well_formed({0, ActionKind::update, 0}));
  EXPECT_FALSE(well_formed({0, ActionKind::reduce, 1}));
  EXPECT_FALSE(well_formed({0, ActionKind::gather, 1, 2}));
  EXPECT_FALSE(well_formed({0, ActionKind::send_gradient, 1, 2}));
  EXPECT_FALSE(well_formed({-1, ActionKind::update}));
  EXPECT_FALSE(well_formed({0, ActionKind::forward, 0, -2}));
}

TEST(Action, WordsThatAreNoActionsAreNamed) {
  for (const char* word : {"F",
                           "0F",
                           "F0",
                           "0X1",
                           "0F-1",
                           "0F1x",
                           "0U3",
                           "1.5F0",
                           "0F1.",
                           "0F.1",
                           "0F1.2.3",
                           "0GATHER",
                           "0GATHER1",
                           "0GATHER1.2",
                           "0REDUCE3",
                           "0REDUCE.2",
                           "0SEND_F",
                           "0SEND_F1.2",
                           "0STORE.2",
                           "0FETCH3",
                           "0LOAD2.1",
                           "0SEND1",
                           "0",
                           "0f1",
                           "0F99999999999",
                           "0F1.1000000000"}) {
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
  EXPECT_EQ(peak_in_flight(parse_program("0F0.0 0F0.1 0F1.0 0B0.1 0B0.0 0F1.1 0B1.1 0B1.0 0U")), 2);
}

TEST(Action, InFlightUntilTheLastBackwardAction) {
  EXPECT_EQ(peak_in_flight(parse_program("0F0 0I0 0F1 0I1 0W0 0W1 0U")), 2);
  EXPECT_EQ(peak_in_flight(parse_program("0F0 0I0 0W0 0F1 0I1 0W1 0U")), 1);
  EXPECT_EQ(peak_in_flight(parse_program("0F0.0 0F0.1 0B0.1 0I0.0 0F1.0 0W0.0")), 2);
  const Program two = parse_program("0F0 3F0 0F1 3B0 0B0 3F1 3B1 0B1 0U");
  EXPECT_EQ(peak_in_flight(two, 0), 2);
  EXPECT_EQ(peak_in_flight(two, 3), 1);
  EXPECT_EQ(peak_in_flight(two, 1), 0);
  EXPECT_EQ(peak_in_flight(two), 3);
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
