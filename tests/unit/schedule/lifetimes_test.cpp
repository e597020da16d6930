#include "schedule/lifetimes.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace rankine {
namespace {

struct Span {
  int block, first, last;
  bool operator==(const Span&) const = default;
};

std::vector<Span> spans(const std::vector<Stay>& stays) {
  std::vector<Span> out;
  for (const Stay& stay : stays) out.push_back({stay.block, stay.first, stay.last});
  return out;
}

void PrintTo(const Span& span, std::ostream* out) {
  *out << "block " << span.block << " " << span.first << "-" << span.last;
}

TEST(Lifetimes, GathersStayUntilTheirRelease) {
  const Program program =
      parse_program("0GATHER.0 0F0.0 0GATHER.1 0RELEASE.0 0F0.1 0RELEASE.1 0GATHER.0 0RELEASE.0");
  const std::vector<Stay> stays = gather_stays(program, {100, 7});
  EXPECT_EQ(spans(stays), (std::vector<Span>{{0, 0, 3}, {1, 2, 5}, {0, 6, 7}}));
  EXPECT_EQ(stays[0].bytes, 100);
  EXPECT_EQ(stays[1].bytes, 7);
  EXPECT_THROW(gather_stays(parse_program("0GATHER.0"), {1}), Error);
  EXPECT_THROW(gather_stays(parse_program("0RELEASE.0"), {1}), Error);
  EXPECT_THROW(gather_stays(parse_program("0GATHER.0 0GATHER.0"), {1}), Error);
}

// Indices:                0     1     2     3          4     5          6     7     8     9
const char* const two =
    "0F0.0 0F0.1 0B0.1 0REDUCE0.1 0B0.0 0REDUCE0.0 0F1.0 0F1.1 0B1.1 0REDUCE1.1 "
    "0B1.0 0REDUCE1.0 0U";
const std::vector<BlockTraits> plain = {{.parameter_elements = 1}, {.parameter_elements = 1}};

TEST(Lifetimes, GradientsStayUntilTheirReductionHadTime) {
  const Program program = parse_program(two);
  EXPECT_EQ(spans(gradient_stays(program, plain, {1, 1}, 0)),
            (std::vector<Span>{{1, 2, 3}, {0, 4, 5}, {1, 8, 9}, {0, 10, 11}}));
  EXPECT_EQ(spans(gradient_stays(program, plain, {1, 1}, 1)),
            (std::vector<Span>{{1, 2, 4}, {0, 4, 6}, {1, 8, 10}, {0, 10, 12}}));
  EXPECT_EQ(spans(gradient_stays(program, plain, {1, 1}, 9)),
            (std::vector<Span>{{1, 2, 7}, {0, 4, 9}, {1, 8, 12}, {0, 10, 12}}));
}

TEST(Lifetimes, GradientsStayFromTheirFirstUse) {
  std::vector<BlockTraits> tied = plain;
  tied[1].tied = 0;
  EXPECT_EQ(spans(gradient_stays(parse_program(two), tied, {1, 1}, 1)),
            (std::vector<Span>{{1, 2, 4}, {0, 2, 6}, {1, 8, 10}, {0, 8, 12}}));
}

TEST(Lifetimes, GradientsAreWrittenByTheWeightBackward) {
  const Program program =
      parse_program("0F0.0 0I0.0 0F1.0 0I1.0 0W0.0 0REDUCE0.0 0W1.0 0REDUCE1.0 0U");
  EXPECT_EQ(spans(gradient_stays(program, {plain[0]}, {1}, 1)),
            (std::vector<Span>{{0, 4, 5}, {0, 6, 8}}));
}

TEST(Lifetimes, GradientsOfSeveralMicroBatchesInFlightShareAStay) {
  std::vector<BlockTraits> tied = plain;
  tied[1] = {.parameter_elements = 1, .tied = 0, .splits_backward = false};
  const Program program =
      add_reduces(expand_blocks(parse_program("0F0 0F1 0I0 0I1 0W0 0W1 0U"), {{0, 0, 2}}, tied),
                  tied, {.every_micro = true});
  EXPECT_EQ(to_string(program),
            "0F0.0 0F0.1 0F1.0 0F1.1 0B0.1 0REDUCE0.1 0I0.0 0B1.1 0REDUCE1.1 0I1.0 0W0.0 "
            "0REDUCE0.0 0W1.0 0REDUCE1.0 0U");
  // The head's second B (7) adds to the embedding's matrix before its first reduction (11).
  EXPECT_EQ(spans(gradient_stays(program, tied, {1, 1}, 0)),
            (std::vector<Span>{{1, 4, 5}, {0, 4, 11}, {1, 7, 8}, {0, 12, 13}}));
}

TEST(Lifetimes, GradientsThatAreNeverReducedStayUntilTheUpdate) {
  EXPECT_EQ(spans(gradient_stays(parse_program("0F0.0 0B0.0 0U 0REFRESH.0"), {plain[0]}, {1}, 3)),
            (std::vector<Span>{{0, 1, 2}}));
}

TEST(Lifetimes, GradientsNeverOutliveTheUpdate) {
  const Program program = parse_program("0F0.0 0B0.0 0REDUCE0.0 0U 0REFRESH.0");
  EXPECT_EQ(spans(gradient_stays(program, {plain[0]}, {1}, 5)), (std::vector<Span>{{0, 1, 3}}));
}

TEST(Lifetimes, PlacesAreReusedAndAligned) {
  std::vector<Stay> stays = {
      {0, 0, 4, 100}, {1, 1, 2, 10}, {2, 2, 5, 64}, {3, 3, 4, 64}, {4, 5, 6, 1}};
  EXPECT_EQ(place(stays), 256);
  EXPECT_EQ(stays[0].offset, 0);
  EXPECT_EQ(stays[1].offset, 128);
  EXPECT_EQ(stays[2].offset, 192);  // index 2 belongs to both
  EXPECT_EQ(stays[3].offset, 128);
  EXPECT_EQ(stays[4].offset, 0);
  std::vector<Stay> nothing;
  EXPECT_EQ(place(nothing), 0);
}

TEST(Lifetimes, PlacesFollowTheOrderOfStartNotOfTheList) {
  std::vector<Stay> stays = {{0, 5, 9, 64}, {1, 0, 6, 64}};
  EXPECT_EQ(place(stays), 128);
  EXPECT_EQ(stays[0].offset, 64);
  EXPECT_EQ(stays[1].offset, 0);
}

}  // namespace
}  // namespace rankine
