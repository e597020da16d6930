#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/json_place.h"
#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/text_decoder.h"
#include "support/errors.h"

namespace rankine {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

const std::string file = "t.json";

Words words_of(const char* json, std::string_view text, bool first = true) {
  const Json parsed = Json::parse(json);
  const PreTokenizer pre_tokenizer{JsonPlace(parsed, file)};
  Words words;
  pre_tokenizer.split(text, first ? PieceStart::text : PieceStart::later,
                      [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

TEST(PreTokenizer, AppliesEveryStepToThePiecesOfTheLast) {
  const char* digits = R"({"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false}]})";
  EXPECT_EQ(words_of(digits, "ab12 c!"), (Words{"ab", "1", "2", " c", "!"}));
  EXPECT_EQ(words_of(R"({"type": "Digits"})", "ab12 c"), (Words{"ab", "12", " c"}));
  EXPECT_EQ(words_of(R"({"type": "ByteLevel"})", "ab c"), (Words{" ab", " c"}));
  EXPECT_EQ(words_of(R"({"type": "ByteLevel", "use_regex": false})", " ab c"), (Words{" ab c"}));
  EXPECT_EQ(words_of("null", "ab c"), (Words{"ab c"}));
  EXPECT_EQ(words_of("null", ""), Words{});
}

TEST(PreTokenizer, CutsAtStrings) {
  const auto split = [](const std::string& behavior) {
    const std::string json =
        R"({"type": "Split", "pattern": {"String": " "}, "invert": false, "behavior": ")" +
        behavior + "\"}";
    return words_of(json.c_str(), " a  b ");
  };
  EXPECT_EQ(split("Isolated"), (Words{" ", "a", " ", " ", "b", " "}));
  EXPECT_EQ(split("MergedWithPrevious"), (Words{" ", "a ", " ", "b "}));
  EXPECT_EQ(split("MergedWithNext"), (Words{" a", " ", " b", " "}));
  EXPECT_NE(test::message_of([&] { split("Removed"); }).find("'Removed' is not understood"),
            std::string::npos);
}

// Strings are looked for behind each other, not within each other.
TEST(PreTokenizer, CutsAtStringsOfSeveralCharacters) {
  const auto split = [](const std::string& behavior, std::string_view text) {
    const std::string json =
        R"({"type": "Split", "pattern": {"String": "  "}, "invert": false, "behavior": ")" +
        behavior + "\"}";
    return words_of(json.c_str(), text);
  };
  EXPECT_EQ(split("MergedWithNext", "a   b    c"), (Words{"a", "   b", "  ", "  c"}));
  EXPECT_EQ(split("MergedWithPrevious", "a   b    c"), (Words{"a  ", " b  ", "  ", "c"}));
  EXPECT_EQ(split("Isolated", "a   b"), (Words{"a", "  ", " b"}));
}

TEST(PreTokenizer, MarksSpaces) {
  const char* always = R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"})";
  const char* first =
      R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": false})";
  EXPECT_EQ(words_of(always, "a  b", false), (Words{"_a", "_", "_b"}));
  EXPECT_EQ(words_of(always, " a"), (Words{"_a"}));
  EXPECT_EQ(words_of(first, "a b"), (Words{"_a_b"}));
  EXPECT_EQ(words_of(first, "a b", false), (Words{"a_b"}));
  EXPECT_EQ(
      words_of(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})", "a b"),
      (Words{"a", "_b"}));
}

TEST(Normalizer, AppliesItsStepsInOrder) {
  const Json json = Json::parse(R"({"type": "Sequence", "normalizers": [
      {"type": "NFC"}, {"type": "Prepend", "prepend": "_"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "__"},
      {"type": "Replace", "pattern": {"String": "___"}, "content": "+"}]})");
  const Normalizer normalizer{JsonPlace(json, file)};
  std::string buffers[2];
  EXPECT_EQ(normalizer.apply(" e\u0301 b", buffers), "+\u00e9__b");
  EXPECT_EQ(normalizer.apply("", buffers), "");
}

std::string pieces(const AddedTokens& tokens, std::string_view text) {
  std::string out;
  tokens.split(
      text, true, [&](std::string_view piece) { out += "(" + std::string(piece) + ")"; },
      [&](const AddedToken& token) { out += "[" + token.content + "]"; });
  return out;
}

TEST(AddedTokens, TakeTheLongestAndTheSpaceTheyAsk) {
  std::vector<AddedToken> list(4);
  list[0] = {.id = 0, .content = "<a>"};
  list[1] = {.id = 1, .content = "<a><b>"};
  list[2] = {.id = 2, .content = "<s>", .takes_left = true, .takes_right = true};
  list[3] = {.id = 3, .content = "word", .single_word = true};
  const AddedTokens tokens(list, {"<a>", "<a><b>", "<s>", "word"});
  EXPECT_EQ(pieces(tokens, "x<a><a><b>y"), "(x)[<a>][<a><b>](y)");
  EXPECT_EQ(pieces(tokens, "x \u3000<s>\n <s> y"), "(x)[<s>][<s>](y)");
  EXPECT_EQ(pieces(tokens, "a word, words wordword word"), "(a )[word](, words wordword )[word]");
  EXPECT_EQ(pieces(tokens, "<a"), "(<a)");
  EXPECT_EQ(pieces(tokens, ""), "");
}

// As the Hugging Face library: a token may lie in the space that the one before it takes, and one
// that takes the space to its left has none of its own left then.
TEST(AddedTokens, LieInTheSpaceThatOthersTake) {
  std::vector<AddedToken> list(3);
  list[0] = {.id = 0, .content = "<s>", .takes_right = true};
  list[1] = {.id = 1, .content = "  "};
  list[2] = {.id = 2, .content = "\n\n", .takes_left = true, .takes_right = true};
  const AddedTokens tokens(list, {"<s>", "  ", "\n\n"});
  EXPECT_EQ(pieces(tokens, "<s>  x"), "[<s>][  ](x)");
  EXPECT_EQ(pieces(tokens, "<s>    x"), "[<s>][  ][  ](x)");
  EXPECT_EQ(pieces(tokens, "<s>   x"), "[<s>][  ]( x)");
  EXPECT_EQ(pieces(tokens, "a\n\n\n\nx"), "(a)[\n\n](x)");
}

std::string decoded(const char* json, const Words& tokens) {
  const Json parsed = Json::parse(json);
  const TextDecoder decoder{JsonPlace(parsed, file)};
  TextDecoder::State state;
  std::string out;
  for (const std::string& token : tokens) decoder.append(token, state, out);
  return out;
}

TEST(TextDecoder, TurnsPiecesIntoText) {
  const char* llama = R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "_"}, "content": " "}, {"type": "ByteFallback"},
      {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
  EXPECT_EQ(decoded(llama, {"_a", "_b"}), "a b");
  EXPECT_EQ(decoded(llama, {"_", "_b"}), " b");
  EXPECT_EQ(decoded(llama, {"a", "_b"}), "a b");
  EXPECT_EQ(decoded(llama, {"<0xE4>", "<0xB8>", "<0xAD>", "<0xGG>"}), "\u4e2d<0xGG>");
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"})",
                    {"_a", "_b_"}),
            "a b ");
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})",
                    {"_a", "_b"}),
            " a b");
}

// A SentencePiece vocabulary: <0x00> .. <0xFF> are 3 .. 258.
Json sentence_piece_file() {
  Json vocabulary = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocabulary[fmt::format("<0x{:02X}>", byte)] = 3 + byte;
  int id = 259;
  for (const char* token : {"\u2581", "a", "b", "ab", "\u2581ab"}) vocabulary[token] = id++;
  Json json = Json::parse(R"({"normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "\u2581"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A",
                 "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}], "pair": [],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]},
                         "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}},
    "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "added_tokens": [{"id": 1, "content": "<s>", "special": true, "normalized": false},
                     {"id": 2, "content": "</s>", "special": true, "normalized": false}],
    "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "fuse_unk": true,
              "merges": ["a b", "\u2581 ab"]}})");
  json["model"]["vocab"] = vocabulary;
  return json;
}

TEST(SentencePieceFile, FallsBackToBytesAndKeepsThem) {
  const BpeTokenizer tokenizer = BpeTokenizer::parse(sentence_piece_file().dump(), file);
  EXPECT_EQ(tokenizer.encode("ab ab"), (TokenIds{263, 263}));
  EXPECT_EQ(tokenizer.encode("ab", {.add_special = true}), (TokenIds{1, 263, 2}));
  EXPECT_EQ(tokenizer.encode("\u00e9"), (TokenIds{259, 3 + 0xC3, 3 + 0xA9}));
  for (const std::string text : {"ab  \u00e9 \xff\xfe ab", "", " ", "zz", "a\u2581b"}) {
    const std::string expected = text == "a\u2581b" ? "a b" : text;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), expected);
  }
  EXPECT_EQ(tokenizer.decode({1, 263, 2}, true), "ab");
}

TEST(SentencePieceFile, TheWholeTextIsAWord) {
  Json json = sentence_piece_file();
  json["model"]["ignore_merges"] = true;
  json["model"]["vocab"]["\u2581b"] = 264;  // no merge makes it
  const BpeTokenizer tokenizer = BpeTokenizer::parse(json.dump(), file);
  EXPECT_EQ(tokenizer.encode("b"), (TokenIds{264}));
  EXPECT_EQ(tokenizer.encode("ab b"), (TokenIds{263, 259, 261}));
}

TEST(SentencePieceFile, UnknownCharactersAreOneTokenWhenFused) {
  Json json = sentence_piece_file();
  json["model"]["byte_fallback"] = false;
  EXPECT_EQ(BpeTokenizer::parse(json.dump(), file).encode("xyzab"), (TokenIds{259, 0, 262}));
  json["model"]["fuse_unk"] = false;
  EXPECT_EQ(BpeTokenizer::parse(json.dump(), file).encode("xyab"), (TokenIds{259, 0, 0, 262}));
  json["model"]["unk_token"] = nullptr;
  EXPECT_NE(
      test::message_of([&] { BpeTokenizer::parse(json.dump(), file); }).find("text would be lost"),
      std::string::npos);
}

}  // namespace
}  // namespace rankine
