#include "template/marked_text.h"

#include <gtest/gtest.h>

namespace rankine {
namespace {

using Spans = std::vector<TextSpan>;

TEST(MarkedText, JoinsRunsOfOneHistory) {
  MarkedText text("ab", 1);
  text.append("cd", 1);
  text.append("", 2);
  text.append("ef", 0);
  text.append(MarkedText("gh"));
  EXPECT_EQ(text.text(), "abcdefgh");
  EXPECT_EQ(text.spans(), (Spans{{4, 1, false}, {4, 0, false}}));
  EXPECT_EQ(text.first_origin(), 1u);
  EXPECT_EQ(text.span_at(3).origin, 1u);
  EXPECT_EQ(text.span_at(4).origin, 0u);
}

TEST(MarkedText, SlicesKeepTheirRuns) {
  MarkedText text("abc", 1);
  text.append("def", 2);
  text.append("ghi", 0);
  EXPECT_EQ(text.slice(2, 5).text(), "cdefg");
  EXPECT_EQ(text.slice(2, 5).spans(), (Spans{{1, 1, false}, {3, 2, false}, {1, 0, false}}));
  EXPECT_TRUE(text.slice(9, 0).spans().empty());
  EXPECT_EQ(text.slice(0, 9).spans(), text.spans());
}

TEST(MarkedText, AppendsItself) {
  MarkedText text("a", 1);
  text.append("b", 2);
  text.append(text);
  EXPECT_EQ(text.text(), "abab");
  EXPECT_EQ(text.spans(), (Spans{{1, 1, false}, {1, 2, false}, {1, 1, false}, {1, 2, false}}));
}

TEST(MarkedText, MarksWhatIsGenerated) {
  MarkedText text("a", 1);
  text.append("b", 1, true);
  EXPECT_EQ(text.spans().size(), 2u);
  text.mark_generated();
  EXPECT_EQ(text.spans(), (Spans{{2, 1, true}}));
}

TEST(MarkedTextReader, CopiesAscendingPieces) {
  MarkedText text("ab", 1);
  text.append("cd", 2);
  MarkedTextReader reader(text);
  MarkedText out;
  reader.copy(0, 1, out);
  EXPECT_EQ(reader.at(1).origin, 1u);
  reader.copy(3, 4, out);
  EXPECT_EQ(out.text(), "ad");
  EXPECT_EQ(out.spans(), (Spans{{1, 1, false}, {1, 2, false}}));
}

}  // namespace
}  // namespace rankine
