#include <gtest/gtest.h>

#include "base/error.h"
#include "schedule/simulate.h"

namespace rankine {
namespace {

std::string fault(const std::vector<RankProgram>& ranks) {
  try {
    check_completes(ranks);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::internal);
    return e.what();
  }
}

void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no '" << part << "' in: " << message;
}

RankProgram stage(int pipeline, const char* program) {
  return {{.pipeline = pipeline}, parse_program(program)};
}
RankProgram replica(int data, const char* program) {
  return {{.data = data}, parse_program(program)};
}

// Two stages, two micro-batches, one forward, one backward in turn.
const char* const first_1f1b = "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 0U";
const char* const second_1f1b = "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1U";

TEST(Completes, StartedSendsCarryOneForwardOneBackward) {
  EXPECT_EQ(fault({stage(0, first_1f1b), stage(1, second_1f1b)}), "");
  EXPECT_EQ(fault({}), "");
}

TEST(Completes, ARankThatWaitsForItselfIsNamed) {
  // The first stage wants its gradient before it has sent the activation.
  expect_parts(
      fault({stage(0, "0F0 0RECV_B0 0B0 0SEND_F0 0U"), stage(1, "1RECV_F0 1F0 1B0 1SEND_B0 1U")}),
      {"never end", "rank 0 (pipeline 0, data 0, tensor 0), action 2 (0B0)",
       "its action 1 (0RECV_B0)", "rank 1 (pipeline 1, data 0, tensor 0), action 3 (1SEND_B0)",
       "action 1 (1F0) waits for its action 0 (1RECV_F0)"});
}

TEST(Completes, ATransferBehindAWaitIsMissed) {
  // The second stage computes micro-batch 1 first; the first stage sends it behind a gradient.
  expect_parts(fault({stage(0, "0F0 0F1 0RECV_B0 0SEND_F0 0B0 0SEND_F1 0RECV_B1 0B1 0U"),
                      stage(1, "1RECV_F0 1RECV_F1 1F1 1F0 1B0 1SEND_B0 1B1 1SEND_B1 1U")}),
               {"never end", "(0B0) waits for its action 2 (0RECV_B0)",
                "(1F1) waits for its action 1 (1RECV_F1)"});
}

TEST(Completes, TransfersInAnotherOrderAreNamedWithBothSides) {
  expect_parts(fault({stage(0, first_1f1b),
                      stage(1, "1RECV_F1 1F1 1B1 1SEND_B1 1RECV_F0 1F0 1B0 1SEND_B0 1U")}),
               {"rank 0 (pipeline 0, data 0, tensor 0), action 1 (0SEND_F0)",
                "rank 1 (pipeline 1, data 0, tensor 0), action 0 (1RECV_F1)"});
}

TEST(Completes, TransfersThatNobodyMeetsAreNamed) {
  expect_parts(fault({stage(0, "0F0 0SEND_F0"), stage(1, "1F0")}),
               {"action 1 (0SEND_F0)", "never received"});
  expect_parts(fault({stage(0, "0F0"), stage(1, "1RECV_F0 1F0")}),
               {"rank 1", "action 0 (1RECV_F0)", "never sent"});
  expect_parts(fault({stage(0, "0F0 0SEND_F0")}), {"action 1 (0SEND_F0)", "computes stage 1"});
  expect_parts(fault({stage(0, "0F0"), stage(1, "0F0")}), {"stage 0 is computed by rank 0 and"});
}

TEST(Completes, ARankSendsNothingToItself) {
  expect_parts(fault({stage(0, "0F0 0SEND_F0 1RECV_F0 1F0 1B0 1SEND_B0 0RECV_B0 0B0 0U")}),
               {"action 1 (0SEND_F0)", "the rank holds both stages"});
}

TEST(Completes, CollectivesThatDifferAreNamedWithBothSides) {
  const char* good = "0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0REDUCE0.0 0U";
  EXPECT_EQ(fault({replica(0, good), replica(1, good)}), "");
  expect_parts(
      fault({replica(0, good), replica(1, "0F0.0 0F0.1 0B0.1 0B0.0 0REDUCE0.0 0REDUCE0.1 0U")}),
      {"collective 0", "rank 0 (pipeline 0, data 0, tensor 0), action 3 (0REDUCE0.1)",
       "rank 1 (pipeline 0, data 1, tensor 0), action 4 (0REDUCE0.0)"});
  expect_parts(fault({replica(0, good), replica(1, "0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0U")}),
               {"rank 0 (pipeline 0, data 0, tensor 0), action 5 (0REDUCE0.0)", "never joins",
                "rank 1 (pipeline 0, data 1, tensor 0), action 6 (its end)"});
  expect_parts(fault({replica(0, "0F0"), replica(1, "0F0 0GATHER.0")}),
               {"rank 1", "action 1 (0GATHER.0)", "never joins", "rank 0"});
}

TEST(Completes, CollectivesAndTransfersHoldEachOtherUp) {
  const auto rank = [](int pipeline, int data, const char* program) {
    return RankProgram{{.pipeline = pipeline, .data = data}, parse_program(program)};
  };
  // The second stage's replicas gather once each has its activation. Replica 1 of the first stage
  // sends its own behind a gather that replica 0 starts only behind a gradient.
  const char* second = "1RECV_F0 1F0.0 1GATHER.0 1B0.0 1SEND_B0 1U";
  const char* early = "1GATHER.0 1RECV_F0 1F0.0 1B0.0 1SEND_B0 1U";
  const char* first = "0F0.0 0SEND_F0 0RECV_B0 0B0.0 0GATHER.0 0U";
  const char* stuck = "0GATHER.0 0F0.0 0SEND_F0 0RECV_B0 0B0.0 0U";
  EXPECT_EQ(fault({rank(0, 0, first), rank(0, 1, first), rank(1, 0, second), rank(1, 1, second)}),
            "");
  EXPECT_EQ(fault({rank(0, 0, first), rank(0, 1, stuck), rank(1, 0, second), rank(1, 1, early)}),
            "");
  expect_parts(
      fault({rank(0, 0, first), rank(0, 1, stuck), rank(1, 0, second), rank(1, 1, second)}),
      {"never end", "(0B0.0) waits for its action 2 (0RECV_B0)",
       "(1B0.0) waits for its action 2 (1GATHER.0)"});
}

TEST(Completes, TensorRanksRunTheSameProgram) {
  expect_parts(fault({{{.tensor = 0}, parse_program("0F0 0F1 0B1 0B0 0U")},
                      {{.tensor = 1}, parse_program("0F0 0F1 0B0 0B1 0U")}}),
               {"one tensor group", "action 2 (0B1)", "action 2 (0B0)"});
  EXPECT_NE(fault({replica(0, "0F0"), replica(0, "0F0")}), "");
}

TEST(Completes, StagesOfOneRankMayTakeTurns) {
  // Two ranks, four stages: rank 0 holds stages 0 and 2.
  EXPECT_EQ(
      fault({stage(0, "0F0 0SEND_F0 2RECV_F0 2F0 2SEND_F0 2RECV_B0 2B0 2SEND_B0 0RECV_B0 0B0 0U"),
             stage(1,
                   "1RECV_F0 1F0 1SEND_F0 3RECV_F0 3F0 3B0 3SEND_B0 1RECV_B0 1B0 1SEND_B0 "
                   "1U")}),
      "");
}

}  // namespace
}  // namespace rankine
