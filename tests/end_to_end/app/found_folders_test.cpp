#include <algorithm>

#include "support/reference_model.h"
#include "support/token_files.h"
#include "support/tokenizer_json.h"
#include "training_run.h"

// One folder of a model, read alike by all commands, and their figures against plain double
// precision.
namespace rankine::test {
namespace {

class FoundFolders : public TrainingRun {
 protected:
  void SetUp() override { write_text_atomically(home() / "t.txt", corpus_text(60).substr(0, 60)); }
  std::map<std::string, std::string> files() const { return byte_level_files("<|end|>"); }
  // The command on folder `m`, which must succeed.
  Finished ok(const std::vector<std::string>& words) {
    Finished done = run(words);
    EXPECT_EQ(done.code, 0) << words[0] << ": " << done.err;
    return done;
  }
  double loss_of(const Finished& eval) { return Json::parse(eval.out)["loss"].get<double>(); }
  std::vector<std::string> eval(const std::string& m, const std::string& data) {
    return {"eval", "--model", at(m), "--data", data, "--json", "--context", "32"};
  }
  std::vector<std::string> training(const std::string& m, const std::string& data,
                                    const std::string& output) {
    return {"train", "--model",
            at(m),   "--data",
            data,    "--output",
            output,  "--seq-length",
            "16",    "--micro-batch-size",
            "1",     "--steps",
            "1",     "--precision",
            "f32",   "--threads",
            "1"};
  }
};

struct Oddity {
  std::string name, says;
  Json config = Json::object();
  std::map<std::string, std::string> files = {};
};

TEST_F(FoundFolders, OdditiesAreToldByEveryCommandAndChangeNoLoss) {
  Json settings = byte_level_json({.special = {"<|end|>"}});
  settings["truncation"] = {{"max_length", 4}};
  settings["padding"] = {{"strategy", {{"Fixed", 64}}}};
  const std::vector<Oddity> oddities{
      {"plain", ""},
      {"ids",
       "'bos_token_id' is 300",
       {{"bos_token_id", 300}, {"eos_token_id", {256, 264}}, {"pad_token_id", -1}}},
      {"generation",
       "'eos_token_id' is 9999",
       Json::object(),
       {{"generation_config.json", R"({"eos_token_id": [256, 9999], "top_k": 20})"}}},
      {"settings",
       "'truncation' is a setting",
       Json::object(),
       {{"tokenizer.json", settings.dump()}}},
      {"added",
       "special tokens from id 264 on",
       Json::object(),
       {{"tokenizer.json",
         byte_level_json({.special = {"<|end|>", "b", "c", "d", "e", "f", "g", "h", "<pad>"}})
             .dump()}}},
      {"adapters",
       "holds adapters too",
       Json::object(),
       {{"adapter_config.json", "{}"}, {"adapter_model.safetensors", "x"}}}};
  double plain = 0;
  for (const Oddity& oddity : oddities) {
    SCOPED_TRACE(oddity.name);
    HfModel model = hf_model("llama", {.vocabulary = 264, .positions = 64});
    model.config["eos_token_id"] = 256;
    model.config.update(oddity.config);
    std::map<std::string, std::string> beside = files();
    for (const auto& [name, text] : oddity.files) beside[name] = text;
    write_hf_folder(home() / oddity.name, model, {.files = beside});
    const Finished evaluated = ok(eval(oddity.name, at("t.txt")));
    const double loss = loss_of(evaluated);
    if (oddity.says.empty()) plain = loss;
    EXPECT_EQ(loss, plain);
    std::vector<Finished> all{
        evaluated, ok(training(oddity.name, at("t.txt"), at("run-" + oddity.name))),
        ok({"generate", "--model", at(oddity.name), "--prompt", "a", "--max-tokens", "1"})};
    // What is of the tokenizer alone is copied with it.
    const bool of_tokenizer = oddity.files.contains("tokenizer.json");
    const Finished converted =
        ok({"convert", "--from", at(oddity.name), "--to", at("out-" + oddity.name)});
    if (!of_tokenizer) all.push_back(converted);
    for (const Finished& done : all) {
      EXPECT_NE(done.err.find(oddity.says), std::string::npos) << done.err;
      EXPECT_EQ(done.err.find("warning") != std::string::npos, !oddity.says.empty()) << done.err;
    }
  }
}

// Three windows, of which the last is for validation.
TEST_F(FoundFolders, TrainingValidationEvaluationAndGenerationAgree) {
  for (const std::string family : {"qwen2", "gpt2"}) {
    const HfModel model = hf_model(family, {.positions = 32, .tied = family == "gpt2"});
    const ReferenceModel reference(model);
    write_hf_folder(home() / family, model);
    std::vector<int32_t> ids;
    std::vector<uint32_t> raw;
    for (int i = 0; i < 49; ++i) ids.push_back((i * i + 3 * i) % 61);
    raw.assign(ids.begin(), ids.end());
    write_text_atomically(home() / "all.bin", raw_tokens<uint16_t>(raw));
    write_text_atomically(home() / "last.bin", raw_tokens<uint16_t>({raw.begin() + 32, raw.end()}));
    const auto window = [&](size_t i) { return std::span(ids).subspan(16 * i, 17); };
    const double validation = reference.loss_sum(window(2)) / 16;

    std::vector<std::string> words = training(family, at("all.bin"), at("run-" + family));
    for (const char* word : {"--data-format", "raw-u16", "--validation-fraction", "0.3", "--lr",
                             "0", "--min-lr", "0", "--accumulation", "2", "--eval-interval", "1"})
      words.emplace_back(word);
    ok(words);
    const Json step = metrics(home() / ("run-" + family)).at(0);
    EXPECT_NEAR(step["loss"].get<double>(),
                (reference.loss_sum(window(0)) + reference.loss_sum(window(1))) / 32, 2e-5);
    EXPECT_NEAR(step["validation_loss"].get<double>(), validation, 2e-5);

    for (const std::string& from : {family, "run-" + family}) {
      std::vector<std::string> evaluation = eval(from, at("last.bin"));
      evaluation.insert(evaluation.end(), {"--data-format", "raw-u16"});
      EXPECT_NEAR(loss_of(ok(evaluation)), validation, 2e-5) << from;
      words = {"generate", "--model",       at(from), "--max-tokens",
               "1",        "--temperature", "0",      "--prompt-ids"};
      for (const int32_t id : window(2)) words.push_back(std::to_string(id));
      const std::vector<double> logits = reference.logits(window(2)).back();
      EXPECT_EQ(std::stoi(ok(words).out), std::ranges::max_element(logits) - logits.begin())
          << from;
    }
  }
}

TEST_F(FoundFolders, NothingGoesBeyondLearnedPositions) {
  write_hf_folder(home() / "g", hf_model("gpt2", {.vocabulary = 264, .positions = 16}),
                  {.files = files()});
  std::vector<std::string> generate{"generate",     "--model", at("g"),
                                    "--max-tokens", "6",       "--prompt-ids"};
  for (int id = 60; id < 70; ++id) generate.push_back(std::to_string(id));
  ok(generate);
  std::vector<std::string> longer = generate, more = generate;
  longer.insert(longer.end(), {"70"});
  more[4] = "20";
  std::vector<std::string> evaluation = eval("g", at("t.txt"));
  std::vector<std::string> train = training("g", at("t.txt"), at("r"));
  train[8] = "17";
  for (const std::vector<std::string>& words : {longer, more, evaluation, train}) {
    const Finished done = run(words);
    EXPECT_EQ(done.code, 2) << done.err;
    EXPECT_NE(done.err.find("16 positions"), std::string::npos) << done.err;
  }
}

TEST_F(FoundFolders, WhatIsNoModelIsNamed) {
  fs::create_directories(home() / "lora");
  write_text_atomically(home() / "lora" / "adapter_config.json",
                        R"({"base_model_name_or_path": "some/base"})");
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
  write_text_atomically(home() / "pointer.txt", pointer);
  write_hf_folder(home() / "m", hf_model("llama", {.vocabulary = 264}), {.files = files()});
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals{
      {{"convert", "--from", at("lora"), "--to", at("x")}, "adapters (LoRA) for 'some/base'"},
      {training("lora", at("t.txt"), at("r")), "adapters (LoRA) for 'some/base'"},
      {eval("m", at("pointer.txt")), "pointer.txt' is a Git LFS pointer"}};
  for (const auto& [words, says] : refusals) {
    const Finished done = run(words);
    EXPECT_EQ(done.code, 4) << done.err;
    EXPECT_NE(done.err.find(says), std::string::npos) << done.err;
  }
  const auto prompts = [&](const std::string& file, const std::string& text) {
    write_text_atomically(home() / file, text);
    return run(
        {"generate", "--model", at("m"), "--prompt-file", at(file), "--max-tokens", "1", "--json"});
  };
  EXPECT_NE(prompts("p.txt", pointer).err.find("p.txt' is a Git LFS pointer"), std::string::npos);
  const Finished set = prompts("p.jsonl", "{\"prompt\": \"a\", \"max_tokens\": 5}\n");
  EXPECT_EQ(set.code, 4);
  EXPECT_NE(set.err.find("line 1: 'max_tokens' cannot be set line by line"), std::string::npos)
      << set.err;
  const Finished twice = prompts("q.jsonl", "{\"prompt\": \"a\", \"id\": 1, \"prompt\": \"b\"}\n");
  EXPECT_EQ(Json::parse(twice.out)["prompt"], "b") << twice.err;
  // Raw tokens have no form that would show it.
  std::vector<std::string> raw = eval("m", at("pointer.txt"));
  raw.insert(raw.end(), {"--data-format", "raw-u16"});
  EXPECT_NE(run(raw).err.find("is a Git LFS pointer"), std::string::npos);
}

}  // namespace
}  // namespace rankine::test
