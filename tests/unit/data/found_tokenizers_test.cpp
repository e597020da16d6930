#include <gtest/gtest.h>

#include <random>

#include "data/text_tokenizer.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "support/tokenizer_json.h"

// Tokenizers as folders of models have them: settings of calls, runs of spaces as tokens, tokens
// that were added and never learned.
namespace rankine {
namespace {

using Json = nlohmann::json;
using test::byte_level_json;
using test::message_of;
using test::TemporaryFolder;

BpeTokenizer parsed(const Json& json, const std::string& config = "") {
  return BpeTokenizer::parse(json.dump(), "folder/tokenizer.json", {.config = config, .map = ""});
}

TEST(FoundTokenizer, SettingsOfCallsAreToldAndChangeNothing) {
  const Json plain = byte_level_json({.special = {"<|end|>"}});
  const BpeTokenizer expected = parsed(plain);
  const std::string text(300, 'x');
  EXPECT_TRUE(expected.notes().empty());
  const Json truncation = {
      {"direction", "Right"}, {"max_length", 8}, {"strategy", "LongestFirst"}, {"stride", 0}};
  Json padding = {{"strategy", "BatchLongest"},
                  {"direction", "Right"},
                  {"pad_id", 256},
                  {"pad_type_id", 0},
                  {"pad_token", "<|end|>"}};
  padding["pad_to_multiple_of"] = nullptr;
  Json fixed = padding;
  fixed["strategy"] = {{"Fixed", 64}};
  for (const auto& [key, value] : {std::pair<std::string, Json>{"truncation", truncation},
                                   {"padding", padding},
                                   {"padding", fixed}}) {
    Json json = plain;
    json[key] = value;
    const BpeTokenizer tokenizer = parsed(json);
    ASSERT_EQ(tokenizer.notes().size(), 1U) << key;
    EXPECT_NE(tokenizer.notes()[0].find("'folder/tokenizer.json': '" + key + "'"),
              std::string::npos)
        << tokenizer.notes()[0];
    EXPECT_EQ(tokenizer.encode(text), expected.encode(text));
    EXPECT_EQ(tokenizer.hash(), expected.hash()) << "token files of one go with the other";
  }
  Json both = plain;
  both["truncation"] = truncation;
  both["padding"] = padding;
  EXPECT_EQ(parsed(both).notes().size(), 2U);
}

TEST(FoundTokenizer, PointersOfGitLfsAreNamed) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 9085657\n";
  const std::string json = byte_level_json().dump();
  for (const std::string file : {"tokenizer.json", "tokenizer_config.json", "merges.txt"}) {
    const TemporaryFolder folder;
    if (file == "merges.txt")
      folder.write("vocab.json", R"({"a": 0})");
    else
      folder.write("tokenizer.json", json);
    folder.write(file, pointer);
    const std::string message = message_of([&] { TextTokenizer::open(folder.path()); });
    EXPECT_NE(message.find(file + "' is a Git LFS pointer"), std::string::npos) << message;
  }
}

TEST(FoundTokenizer, SpecialTokensMayBeBeyondAModelsVocabulary) {
  const BpeTokenizer tokenizer = parsed(byte_level_json({.special = {"<|end|>", "<pad>", "<x>"}}));
  EXPECT_EQ(tokenizer.vocabulary(), 259);
  EXPECT_EQ(tokenizer.text_vocabulary(), 256) << "no text becomes them by itself";
  EXPECT_EQ(parsed(byte_level_json({.special = {"<|end|>"}, .plain = {"  "}})).text_vocabulary(),
            258);
  Json begins = byte_level_json({.special = {"<|end|>", "<s>", "<pad>"}});
  const Json piece = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json token = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  begins["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {token, piece}},
      {"pair", {token, piece}},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {257}}, {"tokens", {"<s>"}}}}}}};
  EXPECT_EQ(parsed(begins).text_vocabulary(), 258) << "a text begins with <s>";
}

// The leftmost longest of the tokens for runs, as long as one fits.
TEST(FoundTokenizer, RunsOfSpacesAreLeftmostLongest) {
  const std::vector<size_t> lengths{24, 12, 8, 4, 3, 2};
  test::ByteLevelParts parts{.special = {"<|end|>"}};
  for (const size_t length : lengths) parts.plain.emplace_back(length, ' ');
  for (const bool normalized : {false, true}) {
    parts.plain_normalized = normalized;
    const BpeTokenizer tokenizer = parsed(byte_level_json(parts));
    for (size_t count = 1; count <= 60; ++count) {
      TokenIds expected{'a'};
      for (size_t left = count; left > 0;) {
        size_t taken = 1;
        int32_t id = ' ';
        for (size_t i = lengths.size(); i-- > 0;)
          if (lengths[i] <= left) {
            taken = lengths[i];
            id = static_cast<int32_t>(257 + i);
          }
        expected.push_back(id);
        left -= taken;
      }
      expected.push_back('b');
      const std::string text = "a" + std::string(count, ' ') + "b";
      ASSERT_EQ(tokenizer.encode(text), expected) << count << " spaces";
      ASSERT_EQ(tokenizer.decode(expected), text);
    }
  }
}

TEST(FoundTokenizer, TextComesBackWhateverDecodersElsewhereCleanUp) {
  const BpeTokenizer tokenizer =
      parsed(byte_level_json({.special = {"<|end|>"}, .plain = {"    ", "  "}}),
             R"({"eos_token": "<|end|>", "clean_up_tokenization_spaces": true})");
  const std::vector<std::string> parts{" ",      "  ",      "   ",    " !",
                                       " ,",     " n't",    " 's",    "do",
                                       "you",    "?",       "\t",     "\r\n",
                                       "\n",     "e\u0301", "\u00e9", "\u200b",
                                       "\u00a0", "\u3000",  "\u2028", "\U0001f469\u200d\U0001f4bb"};
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += parts[random() % parts.size()];
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    StreamDecoder decoder(tokenizer);
    std::string streamed;
    for (const int32_t id : tokenizer.encode(text)) streamed += decoder.push(id);
    ASSERT_EQ(streamed + decoder.finish(), text);
  }
}

}  // namespace
}  // namespace rankine
