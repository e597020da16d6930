#include "training_run.h"

// `rankine plan`: model states over the ZeRO stages, as a table and as JSON.
namespace rankine::test {
namespace {

class Plan : public TrainingRun {
 protected:
  Json plan(std::vector<std::string> words) {
    words.insert(words.begin(), "plan");
    words.insert(words.end(), {"--json", at("plan.json")});
    const Finished done = run(words);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.code == 0 ? Json::parse(read_text(at("plan.json"))) : Json();
  }
};

TEST_F(Plan, TheExampleOfTheZeroPaper) {
  const Finished done = run({"plan", "--parameters", "7.5B", "--dp", "64"});
  ASSERT_EQ(done.code, 0) << done.err;
  for (const char* text : {" 120 GB ", " 31.4 GB ", " 16.6 GB ", " 1.88 GB ", " 75 % ", " 64.00x "})
    EXPECT_NE(done.out.find(text), std::string::npos) << text << "\n" << done.out;

  const Json json = plan({"--parameters", "7.5e9", "--data-parallel", "64"});
  EXPECT_EQ(json["parameters"], 7'500'000'000);
  EXPECT_EQ(json["data_parallel"], 64);
  EXPECT_EQ(json["optimizer_share"], 0.75);
  ASSERT_EQ(json["zero"].size(), 4u);
  const uint64_t totals[] = {120'000'000'000, 31'406'250'000, 16'640'625'000, 1'875'000'000};
  for (size_t stage = 0; stage < 4; ++stage) {
    const Json& row = json["zero"][stage];
    EXPECT_EQ(row["stage"], stage);
    EXPECT_EQ(row["total_bytes"], totals[stage]);
    EXPECT_EQ(row["parameter_bytes"].get<uint64_t>() + row["gradient_bytes"].get<uint64_t>() +
                  row["optimizer_bytes"].get<uint64_t>(),
              totals[stage]);
  }
}

TEST_F(Plan, AModelCountsItsParameters) {
  const Finished inspected = run({"inspect", at("shape"), "--json"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  const int64_t parameters = Json::parse(inspected.out)["parameters"];
  const Json json = plan({"--model", at("shape")});
  EXPECT_EQ(json["parameters"], parameters);
  for (const Json& row : json["zero"]) EXPECT_EQ(row["total_bytes"], 16 * parameters);
}

TEST_F(Plan, PrecisionsHoldWhatTrainingHereHolds) {
  for (const auto& [precision, gradient, optimizer] :
       {std::tuple{"f32", 4, 8}, {"bf16", 4, 12}, {"f16", 4, 12}}) {
    const Json row = plan({"--parameters", "1000", "--precision", precision})["zero"][0];
    EXPECT_EQ(row["gradient_bytes"], 1000 * gradient) << precision;
    EXPECT_EQ(row["optimizer_bytes"], 1000 * optimizer) << precision;
  }
}

TEST_F(Plan, TrafficCountsMicroBatches) {
  const Json json = plan({"--parameters", "1000", "--dp", "4", "--accumulation", "8"});
  const auto sent = [&](size_t stage) {
    const Json& row = json["zero"][stage];
    return std::pair{row["gradient_elements_sent"].get<double>(),
                     row["parameter_elements_sent"].get<double>()};
  };
  EXPECT_EQ(sent(0), std::pair(1500.0, 0.0));
  EXPECT_EQ(sent(1), std::pair(750.0, 750.0));
  EXPECT_EQ(sent(2), std::pair(6000.0, 750.0));
  EXPECT_EQ(sent(3), std::pair(6000.0, 12000.0));
}

TEST_F(Plan, WrongRequestsAreRefused) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals = {
      {{}, "give either --model NAME or --parameters COUNT"},
      {{"--model", "tiny", "--parameters", "1B"}, "not both"},
      {{"--parameters", "many"}, "'many'"},
      {{"--parameters", "1e30"}, "'1e30'"},
      {{"--parameters", "0"}, "'0'"},
      {{"--parameters", "7.5G"}, "'7.5G'"},
      {{"--parameters", "nan"}, "'nan'"},
      {{"--parameters", "1B", "--dp", "-1"}, "data-parallel"},
      {{"--model", "tiny", "--zero", "4"}, "zero"},
      {{"--model", "tiny", "--zero", "-1"}, "zero"},
      {{"--model", "tiny", "--tensor-parallel", "0"}, "tensor-parallel"},
      {{"--model", "tiny", "--pipeline-parallel", "2", "--schedule", "1f2b"}, "1f1b"},
      {{"--model", "gtp2"}, "'gpt2'"}};
  for (const auto& [more, says] : refusals) {
    std::vector<std::string> words{"plan", "--json", at("plan.json")};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = run(words);
    EXPECT_EQ(done.code, 2) << says;
    EXPECT_NE(done.err.find(says), std::string::npos) << done.err;
  }
  EXPECT_FALSE(fs::exists(home() / "plan.json"));
}

TEST_F(Plan, OptionsThatWouldBeIgnoredAreRefused) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--zero", "3"},
                                             {"--strict"},
                                             {"--print-program"},
                                             {"--micro-batch-size", "2"},
                                             {"--seq-length", "8"},
                                             {"--bucket-size", "1MiB"},
                                             {"--rank-flops", "1e9"},
                                             {"--link-bandwidth", "1MB"},
                                             {"--tensor-parallel", "2"},
                                             {"--sequence-parallel"},
                                             {"--pipeline-parallel", "2"},
                                             {"--schedule", "gpipe"},
                                             {"--virtual-stages", "2"},
                                             {"--stage-layers", "1,2"},
                                             {"--mesh-order", "data,tensor,pipeline"},
                                             {"--gather-window", "3"},
                                             {"--recompute", "full"},
                                             {"--recompute-layers", "1"},
                                             {"--offload-optimizer", "host"},
                                             {"--offload-dir", "somewhere"},
                                             {"--document-mask"},
                                             {"--dropout", "0.1"},
                                             {"--threads", "2"},
                                             {"--instruction-set", "avx2"},
                                             {"--memory-bandwidth", "1e9"}}) {
    std::vector<std::string> command{"plan", "--parameters", "1000"};
    command.insert(command.end(), words.begin(), words.end());
    const Finished done = run(command);
    EXPECT_EQ(done.code, 2) << words[0];
    EXPECT_NE(done.err.find(words[0]), std::string::npos) << done.err;
  }
}

TEST_F(Plan, AModelHasMemoryAProgramAndASimulatedStep) {
  const Json json = plan({"--model", at("shape"), "--dp", "2", "--zero", "3", "--precision", "f32",
                          "--rank-flops", "1e9", "--link-bandwidth", "1MB"});
  EXPECT_EQ(json["memory"]["stage"], 3);
  EXPECT_NE(json["program"].get<std::string>().find("0GATHER.0"), std::string::npos);
  EXPECT_GT(json["simulation"]["seconds"], 0.0);
  const Json& over_step = json["memory"]["over_step"];
  auto bytes = over_step["reserved_bytes"].get<uint64_t>();
  for (const auto& [category, staying] : over_step["staying"].items())
    bytes += staying.get<uint64_t>();
  EXPECT_EQ(bytes, json["zero"][3]["planned_bytes"]);
  const auto peak = over_step["peak_action"].get<size_t>();
  EXPECT_NE(json["program"].get<std::string>().find(
                over_step["actions"].at(peak)["action"].get<std::string>()),
            std::string::npos);
  uint64_t before = UINT64_MAX;
  for (const Json& row : json["zero"]) {
    const uint64_t states =
        row["planned_bytes"].get<uint64_t>() - row["residual_bytes"].get<uint64_t>();
    EXPECT_LE(states, before) << "a higher stage keeps no more states";
    before = states;
  }
}

// The same options plan the same bytes here and there.
TEST_F(Plan, IsThatOfTrainingWithTheSameOptions) {
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines += Json{{"text", corpus_text(static_cast<size_t>(20 + i * 7 % 50))}}.dump() + "\n";
  write_text_atomically(home() / "corpus.jsonl", lines);
  int runs = 0;
  const auto planned = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{
        "--model", at("shape"),   "--seq-length", "32", "--micro-batch-size",
        "4",       "--precision", "f32"};
    words.insert(words.end(), more.begin(), more.end());
    const Json json = plan(words);
    const std::string name = "run" + std::to_string(runs++);
    words = train({"--steps", "1", "--output", at(name)});
    words[2] = at("corpus.jsonl");
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = run(words);
    EXPECT_EQ(done.code, 0) << done.err;
    const auto bytes = json["pipeline"][0]["planned_bytes"].get<int64_t>();
    EXPECT_EQ(bytes, metrics(home() / name)[0]["memory"]["planned"].get<int64_t>()) << more[1];
    return bytes;
  };
  const int64_t plain = planned({"--threads", "1"});
  EXPECT_EQ(planned({"--threads", "1", "--document-mask"}), plain + 4 * 4 * 32);
  EXPECT_GT(planned({"--threads", "3"}), plain);
  EXPECT_GE(planned({"--threads", "1", "--dropout", "0.1"}), plain);
  planned({"--threads", "0"});
}

TEST_F(Plan, CopiesToTiersArePartOfProgramAndSimulation) {
  const auto seconds = [&](const std::string& bandwidth) {
    const Json json =
        plan({"--model", at("shape"), "--seq-length", "32", "--precision", "f32",
              "--offload-parameters", "host", "--offload-activations", "host",
              "--offload-optimizer", "host", "--rank-flops", "1e9", "--tier-bandwidth", bandwidth});
    const std::string program = json["program"];
    for (const char* word : {"0LOAD.1 ", "0STORE0.1 ", "0FETCH0.1 ", "0RELEASE.1 "})
      EXPECT_NE(program.find(word), std::string::npos) << word << program;
    EXPECT_FALSE(json["memory"]["bytes"].contains("parameters")) << json.dump();
    return json["simulation"]["seconds"].get<double>();
  };
  const double free = seconds("0"), fast = seconds("1GiB"), slow = seconds("10MiB");
  EXPECT_LT(fast, 1.02 * free) << "hidden behind computations";
  EXPECT_GT(slow, 1.2 * free);
}

}  // namespace
}  // namespace rankine::test
