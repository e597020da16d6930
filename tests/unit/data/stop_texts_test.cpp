#include <gtest/gtest.h>

#include <random>

#include "data/text_stream.h"
#include "support/errors.h"
#include "support/tokenizer_json.h"

// Where a text ends: what a stop text is does not depend on how tokens cut the text.
namespace rankine {
namespace {

// Bytes, a special token, and pieces of several characters.
const std::vector<std::string> pieces{"xa",  "ST", "OP", "fooSTOPbar", "abcde",   "\u00e9\u00e8",
                                      "STO", "ab", "b<", "<|s|",       "a\u20ac", "ca"};
const std::string special = "<|s|>";

const BpeTokenizer& tokenizer() {
  static const BpeTokenizer made = BpeTokenizer::parse(
      test::byte_level_json({.special = {special}, .plain = pieces}).dump(), "pieces");
  return made;
}

int32_t id_of(const std::string& text) {
  return text.size() == 1 ? static_cast<uint8_t>(text[0]) : tokenizer().added_id(text);
}

std::vector<int32_t> ids_of(const std::vector<std::string>& texts) {
  std::vector<int32_t> ids;
  for (const std::string& text : texts) ids.push_back(id_of(text));
  return ids;
}

std::vector<std::string> bytes_of(const std::string& text) {
  std::vector<std::string> out;
  for (const char c : text) out.emplace_back(1, c);
  return out;
}

struct Streamed {
  std::string text, unfinished;
  bool stopped = false;
  size_t tokens = 0;
};

Streamed stream(const std::vector<int32_t>& ids, const std::vector<std::string>& stops) {
  TextStream stream(tokenizer(), stops);
  Streamed out;
  for (const int32_t id : ids) {
    if (stream.stopped()) break;
    out.text += stream.push(id);
    ++out.tokens;
  }
  out.text += stream.finish();
  out.unfinished = stream.unfinished();
  out.stopped = stream.stopped();
  return out;
}

struct Case {
  std::vector<std::string> tokens, stops;
  std::string text;
  bool stopped = true;
};

TEST(StopTexts, EndATextWhereTheyBegin) {
  const std::vector<Case> cases{
      {{"n", "ST", "OP", "z"}, {"STOP"}, "n"},             // over tokens
      {{"xa", "a", "b", "z"}, {"ab"}, "xa"},               // begun in vain before
      {{"a", "b"}, {"ac", "b"}, "a"},                      // another one completes
      {{"n", "fooSTOPbar", "z"}, {"STOP"}, "nfoo"},        // within a token
      {{"n", "\xC3", "\xA9", "z"}, {"\u00e9"}, "n"},       // a character of two tokens
      {{"n", "\u00e9\u00e8"}, {"\u00e8"}, "n\u00e9"},      // one of two in a token
      {bytes_of("abcde"), {"bc", "abcd"}, "a"},            // the first to be complete,
      {{"abcde"}, {"bc", "abcd"}, "a"},                    // as one token too
      {{"abcde"}, {"cd", "bcd"}, "a"},                     // both at once: the longest
      {{"n", "STO", "P"}, {"TOP", "STOP"}, "n"},           //
      {{"n", "STO", "P"}, {"STO", "STOP"}, "n"},           // one begins the other
      {{"ST", "OP"}, {"STOP"}, ""},                        // nothing before
      {{"n", "ST"}, {"STOP"}, "nST", false},               // begun at the end
      {{"n", special, "z"}, {special}, "n"},               // a special token
      {{"n", "ab", special, "z"}, {"b" + special}, "na"},  // and text before,
      {{"n", special, "ab"}, {special + "a"}, "n"},        // or behind it
      {{"n", "<|s|", ">", "z"}, {special}, "n"},           // spelled as text
      {{"ST", special, "OP", "z"}, {"STOP"}, ""},          // what is shown counts
      {{"n", special, "ab", special}, {special + special}, "nab", false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::PrintToString(c.tokens) + " " + ::testing::PrintToString(c.stops));
    const Streamed out = stream(ids_of(c.tokens), c.stops);
    EXPECT_EQ(out.text, c.text);
    EXPECT_EQ(out.stopped, c.stopped);
    EXPECT_EQ(out.unfinished, "");
  }
}

TEST(StopTexts, HalfACharacterIsKeptApart) {
  for (const std::string tail : {"\xC3", "\xE2\x82", "\xF0\x9F\x98"}) {
    const Streamed out = stream(ids_of(bytes_of("n" + tail)), {"STOP"});
    EXPECT_EQ(out.text, "n");
    EXPECT_EQ(out.unfinished, tail);
  }
  // Bytes that begin no character are text as they are.
  EXPECT_EQ(stream(ids_of(bytes_of("n\xA9z\xFF")), {}).text, "n\xA9z\xFF");
  EXPECT_EQ(stream(ids_of(bytes_of("n\xC3z")), {}).text, "n\xC3z");
  // Behind a stop text nothing is unfinished.
  EXPECT_EQ(stream(ids_of({"n", "S", "\xC3"}), {"S"}).unfinished, "");
}

TEST(StopTexts, ThatCouldNeverBeFoundAreRefused) {
  for (const std::string stop : {"", "\xC3", "a\xFFz"})
    EXPECT_EQ(test::error_of([&] { check_stop_text(stop); }).kind(), ErrorKind::usage) << stop;
  EXPECT_NO_THROW(check_stop_text("\u00e9\n"));
}

// The rule once more, with all of the text at hand: of all stop texts the one that ends first, of
// those the one that begins first.
std::string text_before_stop(const std::vector<int32_t>& ids, const std::vector<std::string>& stops,
                             bool& stopped) {
  std::string spelled;        // with special tokens
  std::vector<size_t> shown;  // places in it of what is shown
  for (const int32_t id : ids) {
    const std::string text = tokenizer().decode({id});
    for (size_t i = 0; i < text.size(); ++i)
      if (!tokenizer().is_special(id)) shown.push_back(spelled.size() + i);
    spelled += text;
  }
  std::string plain;
  for (const size_t at : shown) plain += spelled[at];
  size_t begin = spelled.size(), end = std::string::npos;
  for (const std::string& stop : stops) {
    const bool of_special = stop.find(special) != std::string::npos;
    const size_t at = (of_special ? spelled : plain).find(stop);
    if (at == std::string::npos) continue;
    const size_t first = of_special ? at : shown[at];
    const size_t last = of_special ? at + stop.size() - 1 : shown[at + stop.size() - 1];
    if (end != std::string::npos && (last > end || (last == end && first >= begin))) continue;
    begin = first;
    end = last;
  }
  stopped = end != std::string::npos;
  const size_t count =
      static_cast<size_t>(std::lower_bound(shown.begin(), shown.end(), begin) - shown.begin());
  return plain.substr(0, count);
}

TEST(StopTexts, AreFoundInAnyTextHoweverItIsCut) {
  std::mt19937 random(7);
  const auto any = [&](const std::vector<std::string>& from) {
    return from[random() % from.size()];
  };
  const std::vector<std::string> tokens{"a",    "b",   "c",    "<",  "|",  ">",     "s",
                                        "ab",   "b<",  "<|s|", "ca", "xa", special, "\u00e9\u00e8",
                                        "\xC3", "\xA9"};
  const std::vector<std::string> parts{"a", "b", "c", "ab", special, "<|s", "\u00e9", "x"};
  for (int round = 0; round < 6000; ++round) {
    std::vector<std::string> texts, stops(1 + random() % 3);
    for (size_t n = random() % 14; n > 0; --n) texts.push_back(any(tokens));
    // A character that a special token interrupts has no one place.
    if (round % 2 == 0)
      std::erase(texts, special);
    else
      std::erase(texts, "\xC3");
    for (std::string& stop : stops)
      for (size_t n = 1 + random() % 3; n > 0; --n) stop += any(parts);
    SCOPED_TRACE(::testing::PrintToString(texts) + " " + ::testing::PrintToString(stops));
    const std::vector<int32_t> ids = ids_of(texts);
    bool stopped = false;
    const std::string expected = text_before_stop(ids, stops, stopped);
    const Streamed out = stream(ids, stops);
    ASSERT_EQ(out.stopped, stopped);
    ASSERT_EQ(out.text + out.unfinished, expected);
  }
}

}  // namespace
}  // namespace rankine
