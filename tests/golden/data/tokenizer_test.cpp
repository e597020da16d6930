#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using Json = nlohmann::json;

// Ids of the Hugging Face tokenizers library.
class GoldenTokenizer : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = test::golden_folder() / "tokenizers";
    if (!std::filesystem::exists(folder_ / "strings.json"))
      GTEST_SKIP() << "no golden files at " << folder_;
    for (const Json& entry : Json::parse(read_text(folder_ / "strings.json")))
      texts_[entry.at("i").get<int>()] = entry.at("text").get<std::string>();
  }

  BpeTokenizer open(const std::string& name) const { return BpeTokenizer::open(folder_ / name); }

  // Compares every recorded string; returns how many there were.
  size_t compare(const BpeTokenizer& tokenizer, const std::string& name) const {
    const Json expected = Json::parse(read_text(folder_ / ("ids." + name + ".json")));
    Encoder encoder(tokenizer);
    for (const Json& entry : expected) {
      const std::string& text = texts_.at(entry.at("i").get<int>());
      const auto ids = entry.at("ids").get<TokenIds>();
      const auto plain = entry.value("ids_plain", ids),
                 special = entry.value("ids_with_special", ids);
      const auto encoded = [&](EncodeOptions options) {
        TokenIds out;
        encoder.encode(text, options, out);
        return out;
      };
      EXPECT_EQ(encoded({.parse_special = true}), ids)
          << name << " " << entry.at("i") << ": " << text;
      EXPECT_EQ(encoded({}), plain) << name << " " << entry.at("i") << ": " << text;
      EXPECT_EQ(encoded({.add_special = true, .parse_special = true}), special)
          << name << " " << entry.at("i") << ": " << text;
      EXPECT_EQ(tokenizer.encode(text), plain) << name << " without a memory of words: " << text;
      EXPECT_EQ(tokenizer.decode(ids), entry.value("decoded", text))
          << name << " " << entry.at("i");
    }
    return expected.size();
  }

  std::filesystem::path folder_;
  std::map<int, std::string> texts_;
};

class GoldenTokenizerFile : public GoldenTokenizer,
                            public testing::WithParamInterface<const char*> {};

TEST_P(GoldenTokenizerFile, GivesTheRecordedIdsAndTexts) {
  EXPECT_EQ(compare(open(GetParam()), GetParam()), 200U);
}

TEST_F(GoldenTokenizer, VocabularyAndMergesAloneAreGpt2) {
  const test::TemporaryFolder old;
  for (const char* name : {"vocab.json", "merges.txt"})
    std::filesystem::copy_file(folder_ / "gpt2" / name, old / name);
  const BpeTokenizer tokenizer = BpeTokenizer::open(old.path());
  EXPECT_EQ(compare(tokenizer, "gpt2"), 200U);
  EXPECT_EQ(tokenizer.special().end, 50256);
  EXPECT_EQ(tokenizer.vocabulary(), 50257);
}

// Its file is kept compressed.
TEST_F(GoldenTokenizer, Qwen3) {
  const test::TemporaryFolder folder;
  const std::string command = "gzip -dc '" + (folder_ / "qwen3.tokenizer.json.gz").string() +
                              "' > '" + (folder / "tokenizer.json").string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const BpeTokenizer tokenizer = BpeTokenizer::open(folder.path());
  EXPECT_EQ(compare(tokenizer, "qwen3"), 200U);
  EXPECT_EQ(tokenizer.vocabulary(), 151669);
}

// Llama 3's own file may not be passed on; whoever has it names it here.
TEST_F(GoldenTokenizer, Llama3WhereItIs) {
  const char* file = std::getenv("RANKINE_LLAMA3_TOKENIZER");
  if (file == nullptr) GTEST_SKIP() << "RANKINE_LLAMA3_TOKENIZER names no tokenizer.json";
  EXPECT_EQ(compare(BpeTokenizer::open(file), "llama3"), 200U);
}

INSTANTIATE_TEST_SUITE_P(Each, GoldenTokenizerFile,
                         testing::Values("gpt2", "small-gpt2", "small-gpt2-prefix-space",
                                         "small-llama3", "small-qwen", "small-sp"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace rankine
