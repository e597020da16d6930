#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/byte_tokenizer.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/unicode.h"
#include "support/errors.h"

namespace rankine {
namespace {

using Json = nlohmann::json;
using test::error_of;

std::vector<std::string> words(SplitPattern pattern, std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = word_bytes(pattern, text, at);
    out.emplace_back(text.substr(at, bytes));
    at += bytes;
  }
  return out;
}

using Words = std::vector<std::string>;

TEST(SplitPattern, CutsWordsAsTheExpressionSays) {
  using enum SplitPattern;
  EXPECT_EQ(words(gpt2, "it's 12345  ok!?\n\n x"),
            (Words{"it", "'s", " 12345", " ", " ok", "!?", "\n\n", " x"}));
  EXPECT_EQ(words(llama3, "it's 12345  ok!?\n\n x"),
            (Words{"it", "'s", " ", "123", "45", " ", " ok", "!?\n\n", " x"}));
  EXPECT_EQ(words(qwen, "12 a"), (Words{"1", "2", " a"}));
  EXPECT_EQ(words(gpt2, "IT'S"), (Words{"IT", "'", "S"}));
  EXPECT_EQ(words(llama3, "IT'S (a) \ta"), (Words{"IT", "'S", " (", "a", ")", " ", "\ta"}));
  EXPECT_EQ(words(llama3, " \n \n  a"), (Words{" \n \n", " ", " a"}));
  EXPECT_EQ(words(gpt2, "a \xff\xff b"), (Words{"a", " \xff\xff", " b"}));
  EXPECT_EQ(words(gpt2, "a   "), (Words{"a", "   "}));
  EXPECT_EQ(words(gpt2, "a\xc2\xa0 b"), (Words{"a", "\xc2\xa0", " b"}));
}

TEST(SplitPattern, IsFoundByItsSpelling) {
  for (const auto pattern : {SplitPattern::gpt2, SplitPattern::llama3, SplitPattern::qwen})
    EXPECT_EQ(find_pattern(pattern_regex(pattern)), pattern);
  EXPECT_EQ(find_pattern(R"(\w+)"), std::nullopt);
}

TEST(Unicode, TellsCharactersAndTheirBytes) {
  EXPECT_EQ(first_char("\u00e9x").point, 0xE9U);
  EXPECT_EQ(first_char("\U0001F600").bytes, 4);
  for (const char* bad : {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xe4\xb8", "\xc3"})
    EXPECT_FALSE(first_char(bad).valid) << to_printable(bad);
  EXPECT_EQ(class_of(0x4E2D), CharClass::letter);
  EXPECT_EQ(class_of(0x2167), CharClass::number);
  EXPECT_EQ(class_of(0x3000), CharClass::space);
  EXPECT_EQ(class_of(0x85), CharClass::space);
  EXPECT_EQ(class_of(0x200B), CharClass::other);
  EXPECT_TRUE(is_word_char('_'));
  EXPECT_TRUE(is_word_char(0x301));
  EXPECT_FALSE(is_word_char('-'));
}

TEST(Unicode, FindsWhatMoreBytesCouldComplete) {
  EXPECT_EQ(incomplete_tail(""), 0U);
  EXPECT_EQ(incomplete_tail("a"), 0U);
  EXPECT_EQ(incomplete_tail("\u4e2d"), 0U);
  EXPECT_EQ(incomplete_tail("a\xe4\xb8"), 2U);
  EXPECT_EQ(incomplete_tail("\xf0\x9f\x98"), 3U);
  EXPECT_EQ(incomplete_tail("\xc3"), 1U);
  EXPECT_EQ(incomplete_tail("\xed\xa0"), 0U) << "the half of a surrogate is no beginning";
  EXPECT_EQ(incomplete_tail("\xff"), 0U);
}

TEST(Unicode, ComposesAndLeavesTheRestAlone) {
  std::string buffer;
  EXPECT_EQ(compose("plain \u4e2d\u00e9 \xff", buffer), "plain \u4e2d\u00e9 \xff");
  EXPECT_EQ(compose("e\u0301 \u2126\xff"
                    "e\u0301 z",
                    buffer),
            "\u00e9 \u03a9\xff\u00e9 z");
  EXPECT_EQ(compose("\u1112\u1161\u11ab a\u0323\u0302", buffer), "\ud55c \u1ead");
}

// As the Hugging Face library: classes by Unicode 16, compositions by Unicode 9.
TEST(Unicode, NewerCharactersAreSplitButNotComposed) {
  EXPECT_EQ(class_of(0x13D94), CharClass::letter);
  EXPECT_EQ(class_of(0x2EBF0), CharClass::letter);
  EXPECT_EQ(class_of(0x1CCF3), CharClass::number);
  EXPECT_EQ(class_of(0x10D69), CharClass::other);
  EXPECT_TRUE(is_word_char(0x10D69));
  EXPECT_FALSE(is_word_char(0x143FB));
  std::string buffer;
  for (const std::string same : {"a\u1dfa\u0323", "\U00011935\U00011930", "\U00011382\U000113c9"})
    EXPECT_EQ(compose(same, buffer), same);
  EXPECT_EQ(compose("e\u0301\u1dfae\u0301", buffer), "\u00e9\u1dfa\u00e9");
}

TEST(ByteAlphabet, StandsForEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(from_printable(to_printable(all)), all);
  EXPECT_EQ(to_printable(" a\n"), "\u0120a\u010a");
  EXPECT_EQ(from_printable("a b"), std::nullopt);
}

// A byte-level file to change: bytes are their values, then "ab" 256, "abc" 257, and added tokens.
Json byte_level_file() {
  Json json = Json::parse(byte_tokenizer_json());
  json["model"]["vocab"]["ab"] = 256;
  json["model"]["vocab"]["abc"] = 257;
  json["model"]["merges"] = Json::array({"a b", {"ab", "c"}});
  json["added_tokens"] = Json::parse(R"([{"id": 258, "content": "<|endoftext|>", "special": true},
                                         {"id": 259, "content": "<think>", "special": false}])");
  return json;
}

BpeTokenizer parsed(const Json& json) {
  return BpeTokenizer::parse(json.dump(), "t.json");
}

TEST(BpeTokenizer, JoinsPairsByRank) {
  const BpeTokenizer tokenizer = parsed(byte_level_file());
  EXPECT_EQ(tokenizer.encode("abcab"), (TokenIds{257, 256}));
  EXPECT_EQ(tokenizer.encode("aabc"), (TokenIds{'a', 257}));
  EXPECT_EQ(tokenizer.decode({257, 256, 258}), "abcab<|endoftext|>");
  EXPECT_EQ(tokenizer.decode({257, 258}, true), "abc");
  EXPECT_EQ(tokenizer.vocabulary(), 260);
  EXPECT_EQ(error_of([&] { tokenizer.decode({260}); }).kind(), ErrorKind::data);
  EXPECT_EQ(error_of([&] { tokenizer.decode({-1}); }).kind(), ErrorKind::data);
}

TEST(BpeTokenizer, ReadsMarkUpInTextOnlyWhenAsked) {
  const BpeTokenizer tokenizer = parsed(byte_level_file());
  const std::string text = "a<|endoftext|>b<think>";
  EXPECT_EQ(tokenizer.encode(text, {.parse_special = true}), (TokenIds{'a', 258, 'b', 259}));
  const TokenIds plain = tokenizer.encode(text);
  EXPECT_EQ(plain.size(), text.size());
  EXPECT_EQ(tokenizer.decode(plain), text);
  EXPECT_TRUE(tokenizer.is_special(258));
  EXPECT_FALSE(tokenizer.is_special(259));
  EXPECT_EQ(tokenizer.special().end, 258);
}

TEST(BpeTokenizer, RunsOfSpacesThatAreTokensAreOrdinaryText) {
  Json json = byte_level_file();
  json["added_tokens"].push_back(
      {{"id", 260}, {"content", "  "}, {"special", false}, {"normalized", true}});
  EXPECT_EQ(parsed(json).encode("a  b<think>").at(1), 260);
}

TEST(BpeTokenizer, TakesSpecialTokensFromTheConfiguration) {
  const BpeTokenizer tokenizer = BpeTokenizer::parse(
      byte_level_file().dump(), "t.json",
      {.config = R"({"eos_token": {"content": "<think>"}, "bos_token": "<|endoftext|>",
                     "pad_token": null})",
       .map = ""});
  EXPECT_EQ(tokenizer.special().end, 259);
  EXPECT_EQ(tokenizer.special().begin, 258);
  EXPECT_EQ(tokenizer.special().pad, -1);
}

TEST(BpeTokenizer, HashIsOfWhatTheFileSays) {
  Json json = byte_level_file();
  const uint64_t hash = parsed(json).hash();
  EXPECT_EQ(BpeTokenizer::parse(json.dump(4), "t.json").hash(), hash);
  EXPECT_EQ(BpeTokenizer::parse(parsed(json).json(), "again").hash(), hash);
  json["model"]["vocab"]["abc"] = 256;
  json["model"]["vocab"]["ab"] = 257;
  EXPECT_NE(parsed(json).hash(), hash);
}

struct Refusal {
  std::string pointer;  // what is replaced
  Json value;
  std::string message;
};

TEST(BpeTokenizer, RefusesByNameWhatItDoesNotUnderstand) {
  const std::vector<Refusal> cases{
      {"/extra", 1, "'t.json': extra: this key is not understood"},
      {"/model/extra", 1, "model.extra: this key is not understood"},
      {"/model/type", "Unigram", "model: type 'Unigram' is not understood"},
      {"/model/dropout", 0.1, "model.dropout: dropout makes ids random"},
      {"/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix: '</w>' is not understood"},
      {"/model/vocab/ab", 257, "model.vocab: two tokens have the id 257"},
      {"/model/vocab/ab", -1, "model.vocab.ab: a token must have text, and an id"},
      {"/model/vocab/ab", 1e9, "model.vocab.ab: a token must have text, and an id"},
      {"/model/merges/0", "a", "model.merges[0]: a merge must be two tokens"},
      {"/model/merges/0", 3, "model.merges[0]: a merge must be"},
      {"/model/merges/1", "x y", "model.merges[1]: 'xy' is no token"},
      {"/model/merges", nullptr, "model.merges: must be an array"},
      {"/normalizer", {{"type", "NFKC"}}, "normalizer.type: normalizer 'NFKC' is not understood"},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}},
       "normalizer.normalizers[0].type: normalizer 'Lowercase'"},
      {"/pre_tokenizer", {{"type", "Whitespace"}}, "pre-tokenizer 'Whitespace' is not understood"},
      {"/pre_tokenizer",
       {{"type", "Split"},
        {"pattern", {{"Regex", "\\w+"}}},
        {"behavior", "Isolated"},
        {"invert", false}},
       "pre_tokenizer.pattern.Regex: this expression is not understood"},
      {"/pre_tokenizer", nullptr, "must both be ByteLevel, or neither"},
      {"/pre_tokenizer/add_prefix_space", 1, "add_prefix_space: must be true or false, not 1"},
      {"/decoder", nullptr, "decoder: without a decoder"},
      {"/decoder", {{"type", "WordPiece"}}, "decoder.type: decoder 'WordPiece' is not understood"},
      {"/post_processor",
       {{"type", "BertProcessing"}},
       "post_processor.type: post-processor 'BertProcessing' is not understood"},
      {"/added_tokens/0/shape", 1, "added_tokens[0].shape: this key is not understood"},
      {"/added_tokens/0/id", 97, "added_tokens[0]: id 97 is 'a' in the vocabulary"},
      {"/added_tokens/0/id", 1000000, "added_tokens[0]: id 1000000 is far beyond"},
      {"/added_tokens/0/id", 259, "added_tokens[1]: '<think>' with id 259 is there twice"},
      {"/added_tokens/0/content", "", "added_tokens[0]: an added token without content"},
  };
  EXPECT_NO_THROW(parsed(byte_level_file()));
  for (const auto& [pointer, value, message] : cases) {
    Json json = byte_level_file();
    json[Json::json_pointer(pointer)] = value;
    const Error error = error_of([&] { parsed(json); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << pointer;
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos)
        << pointer << ": " << error.what();
  }
}

TEST(BpeTokenizer, RefusesDamagedJson) {
  const std::string good = byte_level_file().dump();
  for (const std::string& text :
       {std::string(), good.substr(0, good.size() / 2), std::string("[]"), std::string("\0", 1),
        std::string(100, '['), std::string(R"({"model": 1, "model": 2})")})
    EXPECT_EQ(error_of([&, bad = text] { BpeTokenizer::parse(bad, "t.json"); }).kind(),
              ErrorKind::data)
        << text;
  Json json = byte_level_file();
  json["model"]["vocab"].erase("!");
  EXPECT_NE(test::message_of([&] { parsed(json); }).find("lacks '!', which stands for byte 33"),
            std::string::npos);
}

}  // namespace
}  // namespace rankine
