#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/bpe_trainer.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using Json = nlohmann::json;
using test::error_of;
using test::message_of;

BpeTrainer trainer_of(std::string_view text, SplitPattern pattern = SplitPattern::gpt2) {
  BpeTrainer trainer(pattern);
  trainer.add(text);
  return trainer;
}

Json merges_of(const std::string& json) {
  return Json::parse(json).at("model").at("merges");
}

TEST(BpeTrainer, JoinsTheMostFrequentPairFirst) {
  // "ab" 5 times, " c" 3 times; "abab" and " ab" twice, and a space has the lower id.
  const std::string json = trainer_of("abab c abab c ab c").train(256 + 4);
  EXPECT_EQ(merges_of(json), (Json{"a b", "\u0120 c", "\u0120 ab"}));
}

TEST(BpeTrainer, TiesGoToTheLowerIdsAndOrderOfDocumentsDoesNotMatter) {
  BpeTrainer forwards(SplitPattern::gpt2), backwards(SplitPattern::gpt2);
  for (const char* text : {"xy", "ab", "pq"}) forwards.add(text);
  for (const char* text : {"pq", "xy", "ab"}) backwards.add(text);
  const std::string json = forwards.train(260);
  EXPECT_EQ(merges_of(json), (Json{"a b", "p q", "x y"}));
  EXPECT_EQ(json, backwards.train(260));
}

TEST(BpeTrainer, CountsOverlapsOnce) {
  const std::string json = trainer_of("aaaa aaaa aaaa").train(260);
  EXPECT_EQ(merges_of(json).at(0), "a a");
  const BpeTokenizer tokenizer = BpeTokenizer::parse(json, "trained");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("aaaaaaa")), "aaaaaaa");
}

TEST(BpeTrainer, RefusesWhatTheTextCannotGive) {
  EXPECT_EQ(error_of([] { trainer_of("ab").train(256); }).kind(), ErrorKind::usage);
  EXPECT_NO_THROW(trainer_of("").train(257));
  const Error error = error_of([] { trainer_of("ab").train(1000); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("pairs for 258 tokens only"), std::string::npos)
      << error.what();
  EXPECT_NO_THROW(trainer_of("ab").train(258));
}

TEST(BpeTrainer, WritesWhatOpenReads) {
  for (const auto pattern : {SplitPattern::gpt2, SplitPattern::llama3, SplitPattern::qwen}) {
    const test::TemporaryFolder folder;
    const BpeTrainer trainer = trainer_of("the cat and the hat and the bat 1234 1234", pattern);
    folder.write("tokenizer.json", trainer.train(270));
    folder.write("tokenizer_config.json", trainer.config());
    const BpeTokenizer tokenizer = BpeTokenizer::open(folder.path());
    EXPECT_EQ(tokenizer.vocabulary(), 270);
    EXPECT_EQ(tokenizer.special().end, 269);
    EXPECT_TRUE(tokenizer.is_special(269));
    EXPECT_TRUE(tokenizer.keeps_text());
    EXPECT_LT(tokenizer.encode("the cat and the hat").size(), 12U);
    EXPECT_EQ(BpeTokenizer::open(folder / "tokenizer.json").hash(), tokenizer.hash());
  }
}

// The same tokenizer as the older pair of files.
void write_vocabulary_files(const test::TemporaryFolder& folder, const std::string& json) {
  const Json model = Json::parse(json).at("model");
  Json vocabulary = model.at("vocab");
  vocabulary["<|endoftext|>"] = vocabulary.size();
  folder.write("vocab.json", vocabulary.dump());
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : model.at("merges")) merges += merge.get<std::string>() + "\n";
  folder.write("merges.txt", merges);
}

TEST(VocabularyFiles, GiveTheSameIds) {
  const std::string json = trainer_of("the cat and the hat and the bat").train(266);
  const BpeTokenizer expected = BpeTokenizer::parse(json, "trained");
  const test::TemporaryFolder folder;
  write_vocabulary_files(folder, json);
  const BpeTokenizer tokenizer = BpeTokenizer::open(folder.path());
  const std::string text = "the cat<|endoftext|> and  that";
  for (const bool parse : {false, true})
    EXPECT_EQ(tokenizer.encode(text, {.parse_special = parse}),
              expected.encode(text, {.parse_special = parse}));
  EXPECT_EQ(tokenizer.special().end, 265);
}

TEST(VocabularyFiles, AreRefusedWhenTheyDoNotSayEnough) {
  const std::string json = trainer_of("the cat and the hat").train(262);
  const test::TemporaryFolder folder;
  EXPECT_NE(message_of([&] { BpeTokenizer::open(folder.path()); }).find("has neither"),
            std::string::npos);
  write_vocabulary_files(folder, json);
  EXPECT_NO_THROW(BpeTokenizer::open(folder.path()));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_NE(message_of([&] { BpeTokenizer::open(folder.path()); }).find("of a Qwen2Tokenizer"),
            std::string::npos);
  std::filesystem::remove(folder / "tokenizer_config.json");
  folder.write("merges.txt", "#version: 0.2\nt h\nx\n");
  EXPECT_NE(
      message_of([&] { BpeTokenizer::open(folder.path()); }).find("line 3 must be two tokens"),
      std::string::npos);
  EXPECT_EQ(error_of([&] { BpeTokenizer::open(folder / "absent.json"); }).kind(),
            ErrorKind::environment);
}

}  // namespace
}  // namespace rankine
