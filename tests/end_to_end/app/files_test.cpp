#include "checkpoint/run_checkpoints.h"
#include "training_run.h"

// What lies in folders: who may write there, what is damaged, what is someone else's.
namespace rankine::test {
namespace {

class Files : public TrainingRun {
 protected:
  void expect(const std::vector<std::string>& words, int code, const std::string& said) {
    const Finished done = run(words);
    EXPECT_EQ(done.code, code) << done.err;
    EXPECT_NE(done.err.find(said), std::string::npos) << said << " in " << done.err;
  }
  std::vector<std::string> resume(const std::string& steps) {
    return {"train", "--resume", "--output", at("run"), "--steps", steps};
  }
  void change(const std::string& file, size_t at_byte) {
    std::string bytes = read_text(home() / file);
    bytes.at(at_byte) = static_cast<char>(bytes[at_byte] ^ 4);
    write_text_atomically(home() / file, bytes);
  }
  // A run that has said so many steps and goes on.
  std::unique_ptr<Command> begun(const std::vector<std::string>& words) {
    auto command = std::make_unique<Command>(home(), words);
    while (command->running() && command->errors().find("| loss") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return command;
  }
};

TEST_F(Files, OneJobAtATimeWorksInARunsFolder) {
  fs::create_directories(home() / "other");
  auto words = train({"--output", at("run"), "--steps", "1000000", "--save-interval", "1"});
  const auto holder = begun(words);
  while (run_checkpoints(at("run")).empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Finished second = run_command(home() / "other", resume("1000000"));
  EXPECT_EQ(second.code, 3) << second.err;
  EXPECT_NE(second.err.find(fmt::format("is in use by process {} on ", holder->process())),
            std::string::npos)
      << second.err;
  holder->send(SIGKILL);
  holder->wait();
  const auto newest = newest_checkpoint(at("run")).found;
  ASSERT_TRUE(newest);
  const std::string steps = std::to_string(newest->step + 1);
  expect(resume(steps), 0, "resumed   from step " + std::to_string(newest->step));
  for (const auto& entry : fs::directory_iterator(at("run")))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
}

TEST_F(Files, ARunThatStoppedBeforeItsFirstCheckpointBeginsAgainEitherWay) {
  const auto words = [&](const std::string& steps) {
    return train({"--output", at("run"), "--steps", steps, "--save-interval", "0"});
  };
  const auto kill_early = [&] {
    const auto command = begun(words("1000000"));
    command->send(SIGKILL);
    command->wait();
  };
  kill_early();
  expect(words("3"), 0, "stopped before its first checkpoint; it begins anew");
  fs::remove_all(at("run"));
  kill_early();
  expect(resume("3"), 0, "resumed   from step 0: the run stopped before its first checkpoint");
  EXPECT_EQ(metrics(at("run")).size(), 3U);
  fs::remove_all(at("run"));
  expect(resume("3"), 4, "holds no run to resume: neither a complete checkpoint nor a config.toml");
}

TEST_F(Files, DamageOfARunIsNamedAndGoneRound) {
  ASSERT_EQ(run(train({"--output", at("run"), "--steps", "4", "--save-interval", "2"})).code, 0);
  const auto whole = numbers(at("run"));
  const std::string manifest = "run/step-00000004/manifest.json";
  const std::string text = read_text(home() / manifest);
  change(manifest, text.find("\"updates\":") + 10);
  const auto both = [&](const std::string& said) {
    expect(resume("4"), 0, said);
    EXPECT_EQ(numbers(at("run")), whole);
  };
  both("manifest.json' is damaged: its checksum is not that of its text; the earlier '");
  change("run/step-00000004/tokenizer.json", 40);
  expect({"convert", "--from", at("run"), "--to", at("out")}, 0, "step-00000002' is used instead");
  both("tokenizer.json' is damaged");
  change("run/config.toml", read_text(home() / "run/config.toml").find("lr = ") + 5);
  both("config.toml' is not as it was written, edited or damaged");
  fs::remove(home() / "run/config.toml");
  both("config.toml' is missing");
  change("run/tokenizer.json", 40);
  both("run/tokenizer.json' is not that of");
  fs::resize_file(home() / "run/metrics.jsonl", 100);
  expect(resume("4"), 0, "metrics.jsonl' lacks 4 of the steps up to 4, the first is 1");
}

TEST_F(Files, ADamagedTokenFileIsMadeAgainOrRefused) {
  write_text_atomically(home() / "a.jsonl", "{\"text\": \"" + std::string(5000, 'a') + "\"}\n");
  const auto words = [&](const std::string& name) {
    auto all = train({"--output", at(name), "--steps", "1", "--data-cache", at("cache")});
    all[2] = at("a.jsonl");
    return all;
  };
  ASSERT_EQ(run(words("first")).code, 0);
  const std::string file =
      "cache/" + fs::directory_iterator(home() / "cache")->path().filename().string();
  const std::string good = read_text(home() / file);
  fs::resize_file(home() / file, 700);
  expect(words("second"), 0, "the file is cut short or damaged; it is made again from the text");
  EXPECT_EQ(read_text(home() / file), good);
  change(file, 3000);
  expect(words("third"), 4, "is damaged: tokens 0 to 5000");
}

TEST_F(Files, NothingOfOthersIsRemovedOrReplaced) {
  ASSERT_EQ(run(train({"--output", at("run"), "--steps", "1"})).code, 0);
  const std::vector<std::string> theirs{
      "out.tmp/notes", "tokens.tmp",  "fresh/step-00000002/notes", "metrics", "documents",
      "report",        "taken/notes", "models/tokenizer.json"};
  for (const std::string& name : theirs) {
    fs::create_directories((home() / name).parent_path());
    write_text_atomically(home() / name, "someone else's");
  }
  expect({"convert", "--from", at("run"), "--to", at("out")}, 0, "wrote");
  expect({"tokenize", "--data", at("corpus.txt"), "--tokenizer", "bytes", "--output", at("tokens")},
         0, "tokenized");
  expect(train({"--output", at("fresh"), "--steps", "2"}), 2, "step-00000002");
  expect(train({"--output", at("models"), "--steps", "2"}), 2, "models/tokenizer.json' is there");
  expect(train({"--output", at("new"), "--steps", "2", "--metrics", at("metrics")}), 2,
         "holds no metrics");
  for (const char* layout : {"hf", "checkpoint"})
    expect({"convert", "--from", at("run"), "--to", at("taken"), "--layout", layout}, 2, "notes");
  expect(
      {"eval", "--model", at("run"), "--data", at("corpus.txt"), "--per-document", at("documents")},
      2, "was not written by Rankine");
  expect({"plan", "--parameters", "1000000", "--data-parallel", "2", "--json", at("report")}, 2,
         "was not written by Rankine");
  for (const std::string& name : theirs)
    EXPECT_EQ(read_text(home() / name), "someone else's") << name;
  // What the program wrote itself it may replace.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        run({"plan", "--parameters", "1000000", "--data-parallel", "2", "--json", at("own")}).code,
        0);
    expect({"convert", "--from", at("run"), "--to", at("out")}, 0, "wrote");
    expect({"convert", "--from", at("run"), "--to", at("step"), "--layout", "checkpoint"}, 0,
           "wrote");
  }
}

TEST_F(Files, WhatCannotBePrintedIsAnError) {
  const Finished done =
      run_command(home(), {"-c", "exec \"$0\" --help > /dev/full", RANKINE_BINARY},
                  {.words = {"sh"}, .prepare = {}});
  EXPECT_EQ(done.code, 5) << done.err;
  EXPECT_NE(done.err.find("No space left"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace rankine::test
