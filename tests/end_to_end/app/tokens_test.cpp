#include <algorithm>
#include <thread>

#include "support/compressed.h"
#include "training_run.h"

// Tokenizers, JSON lines and token files from a user's side.
namespace rankine::test {
namespace {

class Tokens : public TrainingRun {
 protected:
  void SetUp() override {
    TrainingRun::SetUp();
    const Finished made = run({"tokenizer", "train", "--data", at("corpus.txt"), "--vocabulary",
                               "300", "--output", at("bpe")});
    ASSERT_EQ(made.code, 0) << made.err;
  }
  std::vector<std::string> with(std::vector<std::string> words,
                                const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // A run with this tokenizer of 6 steps.
  std::vector<std::string> short_run(const std::string& name,
                                     const std::vector<std::string>& more = {}) {
    return with(train({"--tokenizer", at("bpe"), "--steps", "6", "--output", at(name)}), more);
  }
  std::vector<std::string> cached() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(cache_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  void use_cache(const std::string& name) { cache_ = home() / name; }

 private:
  fs::path cache_;
};

TEST_F(Tokens, AreMadeWithTheProcessorsOfAllRanks) {
  use_cache("token-cache");
  for (const std::string ranks : {"1", "2"}) {
    const Finished done =
        run(short_run("run" + ranks, {"--ranks", ranks, "--threads", "1", "--data-cache",
                                      at("cache" + ranks), "--steps", "1"}));
    ASSERT_EQ(done.code, 0) << done.err;
    const bool both = ranks == "2" && std::thread::hardware_concurrency() > 1;
    EXPECT_NE(done.err.find(both ? "/s, 2 threads\n" : "/s, 1 thread\n"), std::string::npos)
        << done.err;
  }
}

TEST_F(Tokens, ARunItsCheckpointsAndItsExportCarryTheTokenizer) {
  use_cache("token-cache");
  const Finished done = run(short_run("run", {"--save-interval", "3"}));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.err.find("tokenized 19"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("vocabulary 300"), std::string::npos) << done.err;
  const Finished exported = run({"convert", "--from", at("run"), "--to", at("hf")});
  ASSERT_EQ(exported.code, 0) << exported.err;
  for (const char* folder : {"run", "run/step-00000003", "run/step-00000006", "hf"})
    for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
      EXPECT_EQ(read_text(home() / folder / file), read_text(home() / "bpe" / file)) << folder;
  EXPECT_EQ(cached().size(), 1u);
  EXPECT_TRUE(cached()[0].ends_with(".tokens"));

  // What was made once is used again, and resumed with the run's own tokenizer wherever the first
  // one has gone.
  fs::rename(home() / "bpe", home() / "moved");
  fs::remove_all(home() / "run/step-00000006");
  const auto before = numbers(home() / "run");
  const Finished resumed = run({"train", "--resume", "--output", at("run")});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.err.find("tokenized"), std::string::npos) << resumed.err;
  EXPECT_EQ(numbers(home() / "run"), before);
  const Finished other =
      run({"train", "--resume", "--output", at("run"), "--tokenizer", "bytes", "--steps", "9"});
  EXPECT_NE(other.code, 0);
  EXPECT_NE(other.err.find("tokenizer"), std::string::npos) << other.err;

  // A model's own tokenizer is the default.
  const Finished tuned = run({"train", "--data", at("corpus.txt"), "--model", at("hf"), "--steps",
                              "1", "--seq-length", "32", "--output", at("tuned")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_EQ(read_text(home() / "tuned/tokenizer.json"), read_text(home() / "hf/tokenizer.json"));
  const Finished wrong =
      run({"train", "--data", at("corpus.txt"), "--model", at("hf"), "--tokenizer", "bytes",
           "--steps", "1", "--seq-length", "32", "--output", at("wrong")});
  EXPECT_EQ(wrong.code, 4) << wrong.err;
  EXPECT_NE(wrong.err.find("was trained with another tokenizer"), std::string::npos) << wrong.err;
}

TEST_F(Tokens, AllWaysToTheSameTokensGiveTheSameRun) {
  ASSERT_EQ(run(short_run("text")).code, 0);
  // The same document as compressed JSON lines.
  const Json line{{"content", read_text(home() / "corpus.txt")}};
  write_text_atomically(home() / "corpus.jsonl.gz", gzip(line.dump() + "\n"));
  auto lines = short_run("lines", {"--text-field", "content"});
  lines[2] = at("corpus.jsonl.gz");
  const Finished from_lines = run(lines);
  ASSERT_EQ(from_lines.code, 0) << from_lines.err;
  // Made beforehand; the file alone is enough.
  const Finished made = run({"tokenize", "--data", at("corpus.txt"), "--tokenizer", at("bpe"),
                             "--output", at("made.tokens"), "--threads", "2"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Finished shown = run({"inspect", at("made.tokens")});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(Json::parse(shown.out)["documents"], 1);
  EXPECT_EQ(Json::parse(shown.out)["vocabulary"], 300);
  auto tokens = train({"--steps", "6", "--output", at("tokens")});
  tokens[2] = at("made.tokens");
  const Finished from_tokens = run(tokens);
  ASSERT_EQ(from_tokens.code, 0) << from_tokens.err;
  // Two ranks, one of which makes the file.
  const Finished on_two =
      run(short_run("two", {"--ranks", "2", "--strict", "--data-cache", at("other"),
                            "--global-batch-size", "4", "--micro-batch-size", "2"}));
  ASSERT_EQ(on_two.code, 0) << on_two.err;
  use_cache("other");
  EXPECT_EQ(cached().size(), 1u);
  EXPECT_EQ(read_text(home() / "other" / cached()[0]), read_text(home() / "made.tokens"));
  EXPECT_EQ(numbers(home() / "lines"), numbers(home() / "text"));
  EXPECT_EQ(numbers(home() / "tokens"), numbers(home() / "text"));
  EXPECT_EQ(read_text(home() / "tokens/tokenizer.json"), read_text(home() / "bpe/tokenizer.json"));
}

TEST_F(Tokens, CorporaAreMixedByWeight) {
  write_text_atomically(home() / "b.txt", corpus_text(9000));
  auto words = train({"--data-weights", "0.75,0.25", "--steps", "4", "--output", at("mixed")});
  words.insert(words.begin() + 3, at("b.txt"));
  const Finished done = run(words);
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.err.find("29.0 K tokens in 2 files"), std::string::npos) << done.err;
  const Finished again = run({"train", "--resume", "--output", at("mixed"), "--steps", "6"});
  ASSERT_EQ(again.code, 0) << again.err;
  const Finished refused = run({"train", "--resume", "--output", at("mixed"), "--steps", "8",
                                "--data", at("b.txt"), "--data-weights", ""});
  EXPECT_EQ(refused.code, 4) << refused.err;
  EXPECT_NE(refused.err.find("another one than the run began with"), std::string::npos);
  words[static_cast<size_t>(std::find(words.begin(), words.end(), "0.75,0.25") - words.begin())] =
      "1";
  words.back() = at("none");
  EXPECT_EQ(run(words).code, 2);
}

TEST_F(Tokens, InstructionsLearnTheirRepliesAlone) {
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += Json{{"prompt", "What is " + std::to_string(i % 3) + "?"}, {"response", "no"}}.dump() +
             "\n";
  write_text_atomically(home() / "qa.jsonl", lines);
  auto words = short_run(
      "qa", {"--data-format", "instructions", "--lr", "1e-2", "--validation-fraction", "0.1"});
  words[2] = at("qa.jsonl");
  words[std::find(words.begin(), words.end(), "6") - words.begin()] = "80";
  const Finished done = run(words);
  ASSERT_EQ(done.code, 0) << done.err;
  const std::vector<Json> steps = metrics(home() / "qa");
  // Less than half of the places are targets, and which reply it is, is soon known.
  EXPECT_GT(steps[0]["tokens"], 0);
  EXPECT_LT(steps[0]["tokens"], 4 * 32 / 2);
  EXPECT_LT(steps[79]["loss"].get<double>(), 1.0);
  EXPECT_GT(steps[79]["validation_loss"].get<double>(), 0.0);
  EXPECT_LT(steps[79]["validation_loss"].get<double>(), 1.0);
  // The same batch on two ranks counts the same tokens and has the same loss.
  const std::vector<std::string> both{
      "--ranks", "2", "--strict", "--steps", "5", "--global-batch-size", "4", "--micro-batch-size",
      "2"};
  auto on_two = with(words, both);
  on_two[std::find(on_two.begin(), on_two.end(), at("qa")) - on_two.begin()] = at("two");
  auto on_one = on_two;
  on_one[std::find(on_one.begin(), on_one.end(), at("two")) - on_one.begin()] = at("one");
  on_one[std::find(on_one.begin(), on_one.end(), "--ranks") - on_one.begin() + 1] = "1";
  ASSERT_EQ(run(on_two).code, 0);
  ASSERT_EQ(run(on_one).code, 0);
  EXPECT_EQ(numbers(home() / "two"), numbers(home() / "one"));
}

TEST_F(Tokens, ADocumentMaskIsTheSameOnAnyMesh) {
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines += Json{{"text", corpus_text(static_cast<size_t>(20 + i * 7 % 50))}}.dump() + "\n";
  write_text_atomically(home() / "short.jsonl", lines);
  const auto masked = [&](const std::string& name, const std::vector<std::string>& more) {
    auto words = short_run(name, {"--strict", "--global-batch-size", "4", "--micro-batch-size", "2",
                                  "--eval-interval", "3"});
    words[2] = at("short.jsonl");
    const Finished done = run(with(words, more));
    EXPECT_EQ(done.code, 0) << done.err;
    return numbers(home() / name);
  };
  const auto plain = masked("plain", {}), alone = masked("alone", {"--document-mask"});
  EXPECT_NE(alone, plain);
  EXPECT_EQ(masked("two", {"--document-mask", "--ranks", "2"}), alone);
  EXPECT_EQ(masked("pipeline", {"--document-mask", "--ranks", "2", "--pp", "2"}), alone);
  EXPECT_EQ(masked("again", {"--document-mask", "--recompute", "selective"}), alone);
}

TEST_F(Tokens, FaultsAreNamedOnceByAllRanks) {
  write_text_atomically(home() / "bad.jsonl", "{\"text\": \"good\"}\nno json\n");
  auto words = short_run("bad", {"--ranks", "2", "--global-batch-size", "2"});
  words[2] = at("bad.jsonl");
  words[9] = "1";
  const Finished done = run(words);
  EXPECT_EQ(done.code, 4) << done.err;
  const size_t first = done.err.find("bad.jsonl:2: no JSON");
  EXPECT_NE(first, std::string::npos) << done.err;
  EXPECT_EQ(done.err.find("bad.jsonl:2: no JSON", first + 1), std::string::npos) << done.err;
  EXPECT_FALSE(fs::exists(home() / "bad")) << "nothing is written before the data are there";
}

TEST_F(Tokens, TokenFilesOfAnotherTokenizerAreRefused) {
  ASSERT_EQ(run({"tokenize", "--data", at("corpus.txt"), "--tokenizer", "bytes", "--output",
                 at("bytes.tokens")})
                .code,
            0);
  auto words = short_run("run");
  words[2] = at("bytes.tokens");
  const Finished done = run(words);
  EXPECT_EQ(done.code, 4);
  EXPECT_NE(done.err.find("was made with another tokenizer"), std::string::npos) << done.err;
  const Finished again = run({"tokenize", "--data", at("corpus.txt"), "--tokenizer", "bytes",
                              "--output", at("bytes.tokens")});
  EXPECT_EQ(again.code, 2) << again.err;
}

}  // namespace
}  // namespace rankine::test
