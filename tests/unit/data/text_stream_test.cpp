#include "data/text_stream.h"

#include <gtest/gtest.h>

#include "data/byte_tokenizer.h"
#include "support/errors.h"

namespace rankine {
namespace {

const BpeTokenizer& bytes() {
  static const BpeTokenizer tokenizer = BpeTokenizer::parse(byte_tokenizer_json(), "bytes");
  return tokenizer;
}

struct Streamed {
  std::vector<std::string> pieces;
  std::string whole;
  bool stopped = false;
};

Streamed stream(const std::string& text, const std::vector<std::string>& stops) {
  TextStream stream(bytes(), stops);
  Streamed out;
  for (const int32_t id : bytes().encode(text)) out.pieces.push_back(stream.push(id));
  out.stopped = stream.stopped();
  out.pieces.push_back(stream.finish());
  for (const std::string& piece : out.pieces) out.whole += piece;
  return out;
}

TEST(TextStream, GivesOutWholeCharacters) {
  const Streamed out = stream("a\xC3\xA9\xF0\x9F\x98\x80", {});
  EXPECT_EQ(out.pieces,
            (std::vector<std::string>{"a", "", "\xC3\xA9", "", "", "", "\xF0\x9F\x98\x80", ""}));
  EXPECT_EQ(stream("ab\xF0\x9F", {}).whole, "ab");
}

TEST(TextStream, EndsBeforeTheFirstStopText) {
  const Streamed out = stream("one STOP two", {"STOP", "two"});
  EXPECT_TRUE(out.stopped);
  EXPECT_EQ(out.whole, "one ");
  EXPECT_EQ(stream("ab", {"b", "ab"}).whole, "") << "the earlier one counts";
}

TEST(TextStream, HoldsBackWhatMayBecomeAStopText) {
  const Streamed out = stream("aaab", {"aac"});
  EXPECT_FALSE(out.stopped);
  EXPECT_EQ(out.pieces, (std::vector<std::string>{"", "", "a", "aab", ""}));
  const Streamed unfinished = stream("x\nUse", {"\nUser:"});
  EXPECT_EQ(unfinished.pieces.back(), "\nUse");
  EXPECT_EQ(unfinished.whole, "x\nUse");
}

TEST(TextStream, LeavesSpecialTokensOut) {
  TextStream stream(bytes(), {});
  EXPECT_EQ(stream.push('a') + stream.push(256) + stream.push('b'), "ab");
}

TEST(TextStream, RefusesAnEmptyStopText) {
  EXPECT_EQ(test::error_of([] { stream("a", {""}); }).kind(), ErrorKind::usage);
}

}  // namespace
}  // namespace rankine
