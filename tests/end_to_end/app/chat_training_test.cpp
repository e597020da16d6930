#include <algorithm>
#include <set>

#include "data/byte_tokenizer.h"
#include "training_run.h"

// A model that is tuned to chat, from data to an export that stops by itself.
namespace rankine::test {
namespace {

class ChatTraining : public TrainingRun {
 protected:
  static constexpr int end_of_text = 256, begin = 257, im_start = 258, im_end = 259,
                       other_end = 260;

  void SetUp() override {
    TrainingRun::SetUp();
    write_tokenizer(at("base"), R"({"bos_token": "<s>", "eos_token": "<|endoftext|>"})");
    Json shape = Json::parse(read_text(home() / "shape" / "config.json"));
    shape["vocab_size"] = 264;
    shape["eos_token_id"] = end_of_text;
    write_text_atomically(home() / "shape" / "config.json", shape.dump());
    ASSERT_EQ(run(train({"--tokenizer", at("base"), "--steps", "1", "--output", at("first")})).code,
              0);
    ASSERT_EQ(run({"convert", "--from", at("first"), "--to", at("model"), "--dtype", "f32"}).code,
              0);
    write_text_atomically(
        home() / "model" / "generation_config.json",
        R"({"eos_token_id": [256, 260], "temperature": 0.6, "top_k": 20, "max_length": 99})");
    write_text_atomically(home() / "talk.jsonl",
                          "{\"prompt\": \"Hi\", \"response\": \"Yo\"}\n"
                          "{\"prompt\": \"Bye\", \"response\": \"Ciao\"}\n");
  }

  static void write_tokenizer(const fs::path& folder, const std::string& config,
                              bool adds_begin = false) {
    Json json = Json::parse(byte_tokenizer_json());
    int id = begin;
    for (const char* content : {"<s>", "<|im_start|>", "<|im_end|>", "<|other|>"}) {
      Json token = json.at("added_tokens").at(0);
      token["id"] = id++;
      token["content"] = content;
      json.at("added_tokens").push_back(token);
    }
    Json settings = Json::parse(config);
    if (adds_begin) settings["add_bos_token"] = true;
    fs::create_directories(folder);
    write_text_atomically(folder / "tokenizer.json", json.dump());
    write_text_atomically(folder / "tokenizer_config.json", settings.dump());
  }

  std::vector<std::string> tune(const std::string& output, const std::string& chat_template,
                                const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"train",
                                   "--model",
                                   at("model"),
                                   "--data",
                                   at("talk.jsonl"),
                                   "--data-format",
                                   "instructions",
                                   "--chat-template",
                                   chat_template,
                                   "--seq-length",
                                   "64",
                                   "--micro-batch-size",
                                   "1",
                                   "--precision",
                                   "f32",
                                   "--validation-fraction",
                                   "0",
                                   "--threads",
                                   "1",
                                   "--output",
                                   at(output)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static Json ends_in(const fs::path& file) {
    return Json::parse(read_text(file)).at("eos_token_id");
  }
};

TEST_F(ChatTraining, ATunedModelStopsByItselfWhereverItIsLoaded) {
  const Finished tuned =
      run(tune("run", "chatml", {"--steps", "150", "--lr", "1e-2", "--warmup-steps", "5"}));
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.err.find("generation ends at '<|endoftext|>' (256), '<|other|>' (260), "
                           "'<|im_end|>' (259)"),
            std::string::npos)
      << tuned.err;
  ASSERT_EQ(run({"convert", "--from", at("run"), "--to", at("out"), "--dtype", "f32"}).code, 0);
  const Json settings = Json::parse(read_text(home() / "out" / "generation_config.json"));
  EXPECT_EQ(settings.at("eos_token_id"), Json({256, 260, 259}));
  EXPECT_EQ(settings.at("temperature"), 0.6);
  EXPECT_EQ(settings.at("max_length"), 99);
  EXPECT_EQ(ends_in(home() / "out" / "config.json"), Json({256, 260, 259}));
  // The template went along: nothing but --chat is needed, and the reply ends by its own token.
  for (const std::string folder : {"run", "out"}) {
    const Finished said = run({"generate", "--model", at(folder), "--chat", "--prompt", "Hi",
                               "--temperature", "0", "--max-tokens", "20", "--json"});
    ASSERT_EQ(said.code, 0) << said.err;
    const Json line = Json::parse(said.out);
    EXPECT_EQ(line.at("text"), "Yo") << folder;
    EXPECT_EQ(line.at("tokens"), Json({'Y', 'o'})) << folder;
    EXPECT_EQ(line.at("finish_reason"), "stop");
    EXPECT_NE(said.err.find("--top-k 20 by"), std::string::npos) << said.err;
  }
}

TEST_F(ChatTraining, AFolderKeepsItsGenerationConfig) {
  ASSERT_EQ(run({"convert", "--from", at("model"), "--to", at("again"), "--dtype", "f32"}).code, 0);
  EXPECT_EQ(read_text(home() / "again" / "generation_config.json"),
            read_text(home() / "model" / "generation_config.json"));
}

// Runs beside each other share the token cache.
TEST_F(ChatTraining, TokensOfOneTemplateAreNotThoseOfAnother) {
  const auto first = [&](const std::string& output, const std::string& chat_template,
                         const std::string& cache) {
    const Finished done =
        run(tune(output, chat_template, {"--steps", "1", "--data-cache", at(cache)}));
    EXPECT_EQ(done.code, 0) << done.err;
    const Json line = metrics(home() / output).front();
    return line.at("loss").dump() + " " + line.at("tokens").dump();
  };
  std::set<std::string> numbers;
  int runs = 0;
  for (const std::string name : {"chatml", "plain", "none"}) {
    const std::string alone = first("alone" + name, name, "cache" + name);
    EXPECT_EQ(first("shared" + name, name, "shared"), alone) << name;
    numbers.insert(alone);
    ++runs;
  }
  EXPECT_EQ(static_cast<int>(numbers.size()), runs);
  const Finished resumed = run({"train", "--resume", "--output", at("sharedchatml"), "--steps", "2",
                                "--chat-template", "plain"});
  EXPECT_EQ(resumed.code, 4) << resumed.err;
  EXPECT_NE(resumed.err.find("corpus is another one"), std::string::npos) << resumed.err;
}

// Documents are learned as prompts and evaluated texts begin.
TEST_F(ChatTraining, TextsBeginAlikeEverywhere) {
  write_tokenizer(at("begins"), R"({"bos_token": "<s>", "eos_token": "<|endoftext|>"})", true);
  write_text_atomically(home() / "d.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"c\"}\n");
  const auto shown = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"tokenize",     "--data",     at("d.jsonl"),
                                   "--tokenizer",  at("begins"), "--output",
                                   at("d.tokens"), "--show",     "9"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = run(words);
    fs::remove(home() / "d.tokens");
    return done.code == 0 ? done.out : done.err;
  };
  EXPECT_EQ(shown({}),
            "--- 1: 4 tokens, 3 learned\n<s>[[ab<|endoftext|>]]\n"
            "--- 2: 3 tokens, 2 learned\n<s>[[c<|endoftext|>]]\n");
  EXPECT_EQ(shown({"--begin-token", "none", "--end-token", "<|other|>"}),
            "--- 1: 3 tokens, 2 learned\na[[b<|other|>]]\n"
            "--- 2: 2 tokens, 1 learned\nc[[<|other|>]]\n");
  // What the user said of it goes along with the model.
  ASSERT_EQ(run(train({"--tokenizer", at("base"), "--begin-token", "<s>", "--end-token",
                       "<|other|>", "--steps", "1", "--output", at("bounded")}))
                .code,
            0);
  ASSERT_EQ(run({"convert", "--from", at("bounded"), "--to", at("bounds"), "--dtype", "f32"}).code,
            0);
  EXPECT_EQ(ends_in(home() / "bounds" / "config.json"), other_end);
  const Finished said =
      run({"generate", "--model", at("bounds"), "--prompt", "a", "--max-tokens", "1", "--json"});
  EXPECT_NE(said.err.find("begins with '<s>' (257), documents end with '<|other|>' (260), "
                          "generation ends at '<|other|>' (260)"),
            std::string::npos)
      << said.err;
}

}  // namespace
}  // namespace rankine::test
