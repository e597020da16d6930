#include <algorithm>

#include "support/npm.h"
#include "training_run.h"

// A trained tokenizer's file in an independent implementation: npm's @huggingface/tokenizers, where
// node is there and the package can be had.
namespace rankine::test {
namespace {

class IndependentTokenizer : public TrainingRun {};

const std::vector<std::string> texts = {
    "The engine of ranks trains models.",
    "  two spaces,\ttabs\n\nand lines \r\n  ",
    "it's we'll THEY'RE don't 1234567 3.14159 x=y+z; <|not a token|>",
    "Grüße, naïve façade — 東京 Привет مرحبا 👩‍👩‍👧 e\u0301",
    "word" + std::string(300, 'x') + " end",
    ""};

TEST_F(IndependentTokenizer, GivesTheSameIds) {
  if (!install_npm_folder(home(), "tokenizers_js", at("js")))
    GTEST_SKIP() << "no node, npm or registry";
  write_text_atomically(home() / "texts.json", Json(texts).dump());
  for (const std::string pattern : {"gpt2", "llama3", "qwen"}) {
    ASSERT_EQ(run({"tokenizer", "train", "--data", at("corpus.txt"), "--vocabulary", "320",
                   "--pattern", pattern, "--output", at(pattern)})
                  .code,
              0);
    const Finished other =
        run_tool(home(), "node", {at("js") + "/encode.mjs", at(pattern), at("texts.json")});
    ASSERT_EQ(other.code, 0) << other.err;
    const Json ids = Json::parse(other.out);
    ASSERT_EQ(ids.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      std::string words;
      for (const Json& id : ids[i]) words += (words.empty() ? "" : " ") + id.dump();
      const Finished own =
          run({"tokenizer", "encode", "--tokenizer", at(pattern), "--text", texts[i]});
      EXPECT_EQ(own.out, words + "\n") << pattern << ": " << texts[i];
    }
  }
}

}  // namespace
}  // namespace rankine::test
