#include <cmath>
#include <sstream>

#include "support/golden.h"
#include "training_run.h"

// Text in, text out: a trained model of the golden folder as a user meets it.
namespace rankine::test {
namespace {

class Stories : public TrainingRun {
 protected:
  void SetUp() override {
    model_ = golden_folder() / "trained" / "stories260K";
    if (!fs::exists(model_ / "golden.json")) GTEST_SKIP() << "no golden files at " << model_;
    golden_ = Json::parse(read_text(model_ / "golden.json"));
    text_ = golden_["greedy_text"];
  }
  std::vector<std::string> words(const std::string& command,
                                 const std::vector<std::string>& more) const {
    std::vector<std::string> words{command, "--model", model_.string(), "--threads", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Finished generate(const std::vector<std::string>& more) {
    std::vector<std::string> all{"--temperature", "0"};
    all.insert(all.end(), more.begin(), more.end());
    return run(words("generate", all));
  }
  // With this as standard input.
  Finished generate_from(const std::string& input, const std::vector<std::string>& more) {
    write_text_atomically(home() / "input.txt", input);
    std::vector<std::string> all{"--temperature", "0"};
    all.insert(all.end(), more.begin(), more.end());
    return run_command(home(), words("generate", all), {.prepare = [path = at("input.txt")] {
                         ::dup2(::open(path.c_str(), O_RDONLY), STDIN_FILENO);
                       }});
  }
  static std::vector<Json> lines(const std::string& text) {
    std::vector<Json> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
    return out;
  }

  fs::path model_;
  Json golden_;
  std::string text_;
};

TEST_F(Stories, GreedyTextIsTheRecordedOne) {
  const Finished done = generate({"--max-tokens", "200"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, text_ + "\n");
  EXPECT_NE(done.err.find("keys and values: 1 x 201 tokens"), std::string::npos) << done.err;
}

TEST_F(Stories, APromptIsContinuedAndAStopTextEndsIt) {
  const std::string prompt = "Once upon a time, there was";
  const size_t end = text_.find("She wanted");
  const Finished done =
      generate({"--prompt", prompt, "--max-tokens", "200", "--stop", "Daddy", "She wanted"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, text_.substr(0, end) + "\n");
}

TEST_F(Stories, SeveralTextsAtOnceAreThoseOneByOne) {
  write_text_atomically(home() / "more.jsonl",
                        "{\"prompt\": \"Tom and\"}\n\n{\"prompt\": \"The cat \\u00e9\"}\n");
  write_text_atomically(home() / "one.txt", "One day, a big\n");
  const auto texts = [&](const std::string& batch) {
    const Finished done = run(
        words("generate", {"--prompt", "Lily", "Once upon a time", "--prompt-file",
                           at("more.jsonl"), at("one.txt"), "--num-samples", "2", "--max-tokens",
                           "30", "--seed", "5", "--json", "--batch-size", batch}));
    EXPECT_EQ(done.code, 0) << done.err;
    return lines(done.out);
  };
  const std::vector<Json> together = texts("8");
  ASSERT_EQ(together.size(), 10u);
  EXPECT_EQ(together, texts("1"));
  EXPECT_EQ(together[0]["prompt"], "Lily");
  EXPECT_EQ(together[9]["prompt"], "One day, a big");
  EXPECT_EQ(together[9]["sample"], 1);
  EXPECT_NE(together[0]["text"], together[1]["text"]) << "two samples of one prompt";
  for (const Json& line : together) {
    EXPECT_TRUE(line["finish_reason"] == "length" || line["finish_reason"] == "stop");
    EXPECT_LE(line["tokens"].size(), 30u);
    EXPECT_GT(line["text"].get<std::string>().size(), 20u);
  }
}

TEST_F(Stories, StandardInputIsAPrompt) {
  const Finished done =
      generate_from("Once upon a time, there was\n", {"--prompt-file", "-", "--max-tokens", "20"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(text_.starts_with(done.out.substr(0, done.out.size() - 1))) << done.out;
}

TEST_F(Stories, AConversationKeepsWhatWasSaid) {
  const Finished done = generate_from("Hello, Lily.\nWhere is Tom?\n",
                                      {"--chat", "--chat-template", "plain", "--system", "A story.",
                                       "--max-tokens", "12", "--json"});
  ASSERT_EQ(done.code, 0) << done.err;
  const std::vector<Json> turns = lines(done.out);
  ASSERT_EQ(turns.size(), 2u);
  ASSERT_EQ(turns[1]["messages"].size(), 4u);
  EXPECT_EQ(turns[1]["messages"][2]["content"], turns[0]["text"]);
  // The second reply is that of the whole conversation read at once.
  write_text_atomically(home() / "talk.jsonl",
                        Json{{"messages", turns[1]["messages"]}}.dump() + "\n");
  const Finished once = generate({"--prompt-file", at("talk.jsonl"), "--chat-template", "plain",
                                  "--max-tokens", "12", "--json"});
  ASSERT_EQ(once.code, 0) << once.err;
  EXPECT_EQ(lines(once.out)[0]["text"], turns[1]["text"]);
}

TEST_F(Stories, ALongConversationForgetsItsBeginning) {
  const Finished done = generate_from(
      "One day, Lily went to the park.\nTom was there.\nThey played.\n",
      {"--chat", "--chat-template", "plain", "--max-tokens", "10", "--context", "60"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.err.find("its first exchange is forgotten"), std::string::npos) << done.err;
}

TEST_F(Stories, WhatDoesNotGoTogetherIsRefused) {
  const auto refusal = [&](const std::vector<std::string>& more, int code = 2) {
    const Finished done = generate(more);
    EXPECT_EQ(done.code, code) << done.err;
    return done.err;
  };
  EXPECT_NE(refusal({"--chat"}, 4).find("has no chat template"), std::string::npos);
  EXPECT_NE(refusal({"--chat", "--chat-template", "chatml", "--prompt", "x"}).find("<|im_start|>"),
            std::string::npos);
  EXPECT_NE(refusal({"--system", "x"}).find("give --chat too"), std::string::npos);
  EXPECT_NE(refusal({"--prompt-ids", "1", "--stop", "x"}).find("--stop"), std::string::npos);
  EXPECT_NE(refusal({"--prompt-ids", "1", "9999"}).find("9999"), std::string::npos);
  EXPECT_NE(refusal({"--max-tokens", "600"}).find("512 positions"), std::string::npos);
  EXPECT_NE(refusal({"--tokenizer", at("none")}, 4).find("none"), std::string::npos);
}

TEST_F(Stories, FaultsOfFilesNameThem) {
  const auto refuse = [&](const std::string& file, const std::string& text, int code,
                          const std::string& says) {
    write_text_atomically(home() / file, text);
    const Finished done =
        generate({"--prompt-file", at(file), "--chat-template", "plain", "--max-tokens", "100"});
    EXPECT_EQ(done.code, code) << done.err;
    EXPECT_NE(done.err.find("'" + at(file) + "'" + says), std::string::npos) << says << done.err;
  };
  refuse("a.jsonl",
         "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\n"
         "{\"messages\": [{\"role\": \"tool\", \"content\": \"x\"}]}\n",
         4, " line 2: message 1");
  refuse("b.jsonl", "\n{\"prompt\": 7}\n", 4, " line 2: ");
  std::string talk(3000, 'x');
  refuse("c.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"" + talk + "\"}]}\n", 2,
         " line 1: a prompt of");
  write_text_atomically(home() / "none.jsonl", "\n");
  const Finished none = generate({"--prompt-file", at("none.jsonl")});
  EXPECT_EQ(none.code, 4) << none.err;
  EXPECT_NE(none.err.find("no prompt in '" + at("none.jsonl") + "'"), std::string::npos)
      << none.err;
  write_text_atomically(home() / "long.txt", talk);
  const Finished longer = generate({"--prompt-file", at("long.txt")});
  EXPECT_EQ(longer.code, 2) << longer.err;
  EXPECT_NE(longer.err.find("'" + at("long.txt") + "': a prompt of"), std::string::npos)
      << longer.err;
}

TEST_F(Stories, EvalGivesTheRecordedLoss) {
  const std::string text = golden_["heldout_text"];
  const double loss = golden_["heldout_loss"];
  write_text_atomically(home() / "held.txt", text);
  const auto tokens = static_cast<double>(golden_["heldout_ids"].size() - 1);
  const Finished done = run(words("eval", {"--data", at("held.txt"), "--json"}));
  ASSERT_EQ(done.code, 0) << done.err;
  const Json json = Json::parse(done.out);
  EXPECT_NEAR(json["loss"].get<double>(), loss, 1e-5);
  EXPECT_EQ(json["tokens"], tokens);
  EXPECT_EQ(json["bytes"], text.size());
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(loss), 1e-4);
  EXPECT_NEAR(json["bits_per_byte"].get<double>(),
              loss * tokens / std::log(2.0) / static_cast<double>(text.size()), 1e-5);
}

TEST_F(Stories, EvalOfManyDocumentsDependsOnNoLayout) {
  std::string corpus;
  for (int i = 0; i < 7; ++i)
    corpus +=
        Json{{"text", text_.substr(static_cast<size_t>(20 * i), static_cast<size_t>(10 + 50 * i))}}
            .dump() +
        "\n";
  write_text_atomically(home() / "many.jsonl", corpus);
  const auto evaluate = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"--data", at("many.jsonl"), "--context",          "64",
                                 "--json", "--per-document", at("documents.jsonl")};
    all.insert(all.end(), more.begin(), more.end());
    const Finished done = run(words("eval", all));
    EXPECT_EQ(done.code, 0) << done.err;
    return Json::parse(done.out);
  };
  const Json one = evaluate({"--micro-batch-size", "1"});
  const std::vector<Json> documents = lines(read_text(at("documents.jsonl")));
  ASSERT_EQ(documents.size(), 7u);
  double sum = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    EXPECT_EQ(documents[i]["index"], i);
    EXPECT_EQ(documents[i]["bytes"], 10 + 50 * i);
    sum += documents[i]["loss"].get<double>() * documents[i]["tokens"].get<double>();
  }
  EXPECT_NEAR(sum / one["tokens"].get<double>(), one["loss"].get<double>(), 1e-9);
  for (const std::vector<std::string>& layout :
       {std::vector<std::string>{"--micro-batch-size", "5"}, {"--ranks", "2"}}) {
    const Json other = evaluate(layout);
    EXPECT_NEAR(other["loss"].get<double>(), one["loss"].get<double>(), 1e-6);
    EXPECT_EQ(other["tokens"], one["tokens"]);
  }
  // Tokens see more before them when windows overlap.
  EXPECT_LT(evaluate({"--stride", "16"})["loss"].get<double>(), one["loss"].get<double>());
}

}  // namespace
}  // namespace rankine::test
