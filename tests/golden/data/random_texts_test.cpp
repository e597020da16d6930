#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/tokenizer/bpe_tokenizer.h"
#include "support/golden.h"
#include "support/npm.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Random texts in the Hugging Face tokenizers library itself, which npm has, where there is node
// and a registry.
class RandomTexts : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = test::golden_folder() / "tokenizers";
    if (!fs::exists(folder_)) GTEST_SKIP() << "no golden files at " << folder_;
    if (!test::install_npm_folder(home_.path(), "tokenizers_rust", home_ / "js"))
      GTEST_SKIP() << "no node, npm or registry";
  }

  void compare(const std::string& name) {
    const test::Finished other =
        test::run_tool(home_.path(), "node",
                       {(home_ / "js/random_texts.mjs").string(),
                        (folder_ / name / "tokenizer.json").string(), "3000", "1"});
    ASSERT_EQ(other.code, 0) << other.err;
    const Json results = Json::parse(other.out);
    ASSERT_EQ(results.size(), 3000U);
    const BpeTokenizer tokenizer = BpeTokenizer::open(folder_ / name);
    Encoder encoder(tokenizer);
    for (const Json& result : results) {
      const auto text = result.at("text").get<std::string>();
      TokenIds ids;
      encoder.encode(text, {.parse_special = true}, ids);
      EXPECT_EQ(Json(ids), result.at("ids"))
          << name << ": " << result.at("text").dump(-1, ' ', true);
      EXPECT_EQ(tokenizer.decode(ids), result.at("decoded").get<std::string>())
          << name << ": " << result.at("text").dump(-1, ' ', true);
    }
  }

  test::TemporaryFolder home_;
  fs::path folder_;
};

TEST_F(RandomTexts, GetTheIdsOfTheRustLibrary) {
  for (const char* name :
       {"gpt2", "small-gpt2", "small-gpt2-prefix-space", "small-llama3", "small-qwen", "small-sp"})
    compare(name);
}

}  // namespace
}  // namespace rankine
