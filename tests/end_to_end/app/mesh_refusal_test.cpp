#include "mesh_run.h"

// Layouts that cannot be: one message that names what is wrong, exit code 2, nothing written.
namespace rankine::test {
namespace {

class MeshRefusals : public MeshRun {
 protected:
  void refuse(int ranks, const std::vector<std::string>& words,
              const std::vector<std::string>& says) {
    std::string asked;
    for (const std::string& word : words) asked += word + " ";
    SCOPED_TRACE(asked);
    const Finished done = run(train_mesh(ranks, "run", words));
    EXPECT_EQ(done.code, 2) << done.err;
    EXPECT_EQ(occurrences("\n" + done.err, "\nrankine: "), 1u) << done.err;
    for (const std::string& part : says)
      EXPECT_NE(done.err.find(part), std::string::npos) << part << "\n" << done.err;
    EXPECT_FALSE(fs::exists(home() / "run"));
  }

  // Of two pipeline ranks and two micro-batches.
  void refuse_schedule(const std::string& text, const std::vector<std::string>& says) {
    const fs::path file = home() / "schedule.txt";
    write_text_atomically(file, text);
    std::vector<std::string> all{"'" + file.string() + "'"};
    all.insert(all.end(), says.begin(), says.end());
    refuse(2, {"--pipeline-parallel", "2", "--global-batch-size", "2", "--schedule", file.string()},
           all);
  }
};

TEST_F(MeshRefusals, DegreesThatDoNotMultiplyToTheRanks) {
  refuse(3, {"--tensor-parallel", "2"}, {"3 ranks", "--tensor-parallel 2"});
  refuse(4, {"--tensor-parallel", "2", "--pipeline-parallel", "2", "--data-parallel", "2"},
         {"4 ranks", "--data-parallel 2", "--tensor-parallel 2", "--pipeline-parallel 2"});
  refuse(1, {"--pipeline-parallel", "2"}, {"1 rank", "--pipeline-parallel 2"});
}

TEST_F(MeshRefusals, HeadsThatCannotBeSplitNameTheLegalDegrees) {
  refuse(3, {"--tensor-parallel", "3"}, {"--tensor-parallel 3", "4 heads", "1, 2, 4"});
  refuse(8, {"--tensor-parallel", "8"}, {"--tensor-parallel 8", "4 heads", "1, 2, 4"});
}

TEST_F(MeshRefusals, RowsThatSequenceParallelismCannotSplit) {
  refuse(2, {"--sequence-parallel"}, {"--sequence-parallel", "--tensor-parallel"});
  refuse(2, {"--tensor-parallel", "2", "--sequence-parallel", "--seq-length", "31"},
         {"--sequence-parallel", "31"});
}

TEST_F(MeshRefusals, StagesThatDoNotFitTheModel) {
  const auto layers = [&](const std::string& text, const std::vector<std::string>& says) {
    refuse(2, {"--pipeline-parallel", "2", "--stage-layers", text}, says);
  };
  layers("2,3", {"--stage-layers", "5", "4"});
  layers("1,2,1", {"--stage-layers", "3 numbers", "2 stages"});
  layers("two,2", {"--stage-layers", "'two'"});
  layers("-1,5", {"--stage-layers", "'-1'"});
  refuse(3, {"--pipeline-parallel", "3", "--global-batch-size", "6", "--stage-layers", "2,0,2"},
         {"stage 1", "needs one"});
  refuse(8, {"--pipeline-parallel", "8"}, {"8", "4 layers"});
}

TEST_F(MeshRefusals, VirtualStagesThatAScheduleHasNot) {
  refuse(2, {"--pipeline-parallel", "2", "--virtual-stages", "2"}, {"1f1b", "interleaved"});
  refuse(2, {"--pipeline-parallel", "2", "--schedule", "interleaved", "--virtual-stages", "1"},
         {"interleaved", "at least 2"});
  refuse(2, {"--pipeline-parallel", "2", "--schedule", "zb-v", "--virtual-stages", "3"},
         {"zb-v", "exactly 2"});
}

TEST_F(MeshRefusals, NamesThatNothingHas) {
  refuse(2, {"--pipeline-parallel", "2", "--schedule", "1f2b"}, {"1f2b", "1f1b"});
  refuse(2, {"--tensor-parallel", "2", "--mesh-order", "data,tensor"}, {"data,tensor"});
  refuse(2, {"--tensor-parallel", "2", "--mesh-order", "data,tensor,tensor"},
         {"data,tensor,tensor"});
}

TEST_F(MeshRefusals, BrokenScheduleFiles) {
  refuse_schedule("rank 0: 0F0 0F1 0B0 0U\nrank 1: 1F0 1B0 1F1 1B1 1U\n",
                  {"rank 0", "micro-batch 1", "never finished", "stage 0"});
  refuse_schedule("rank 0: 0F0 0F1 0B0 0B1 0U\nrank 1: 1F0 1B0 1F1 1U\n",
                  {"line 2, rank 1", "micro-batch 1", "never finished", "stage 1"});
  // Rank 0 waits for the gradient of a micro-batch that it hands on only afterwards.
  refuse_schedule("rank 0: 0F0 0B0 0F1 0B1 0U\nrank 1: 1F0 1F1 1B0 1B1 1U\n", {"rank 0", "rank 1"});
  refuse_schedule(
      "rank 0: 0F0 0F1 0B0 0B1 0U\nrank 1: 1F0 1B0 1F1 1B1 1U\nrank 2: 2F0 2B0 2F1 2B1 2U\n",
      {"3 ranks", "--pipeline-parallel 2"});
  refuse_schedule("rank 0: 0F0 0B0 0U\nrank 1: 1F0 1B0 1U\n", {"1 micro-batches", "2"});
  refuse_schedule("rank 0: 0F0 0F1 0B0 0B1 0U\nrank 2: 1F0 1B0 1F1 1B1 1U\n", {"line 2", "'2:'"});
  refuse_schedule("rank 0: 0F0 0F1 0X0 0B1 0U\nrank 1: 1F0 1B0 1F1 1B1 1U\n", {"line 1", "0X0"});
  refuse_schedule("", {"no rank"});
  refuse(2, {"--pipeline-parallel", "2", "--virtual-stages", "2", "--schedule", at("schedule.txt")},
         {"--virtual-stages 2", "'" + at("schedule.txt") + "'"});
  refuse(2, {"--pipeline-parallel", "2", "--schedule", at("absent.txt")}, {"absent.txt"});
}

class MeshPlans : public TrainingRun {};

TEST_F(MeshPlans, TheGridShowsAllRanks) {
  const Finished done = run({"plan", "--model", "tiny", "--pipeline-parallel", "4",
                             "--accumulation", "8", "--print-program"});
  ASSERT_EQ(done.code, 0) << done.err;
  size_t at = done.out.find("grid of the pipeline's ranks");
  ASSERT_NE(at, std::string::npos) << done.out;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string row = "\nrank " + std::to_string(rank) + ": ";
    at = done.out.find(row, at);
    ASSERT_NE(at, std::string::npos) << row << done.out;
    const std::string line = done.out.substr(at + 1, done.out.find('\n', at + 1) - at - 1);
    for (const char* cell : {" F0 ", " F7 ", " B0 ", " B7"})
      EXPECT_NE(line.find(cell), std::string::npos) << cell << "\n" << line;
    const std::string program = "step program of pipeline rank " + std::to_string(rank);
    EXPECT_NE(done.out.find(program), std::string::npos) << done.out;
  }
}

TEST_F(MeshPlans, MatchWhatTheRanksReserve) {
  const Finished done =
      run({"plan", "--model", at("shape"), "--tensor-parallel", "2", "--data-parallel", "2",
           "--zero", "1", "--precision", "f32", "--seq-length", "32", "--json", at("plan.json")});
  ASSERT_EQ(done.code, 0) << done.err;
  const Json json = Json::parse(read_text(at("plan.json")));
  const Finished trained =
      run(train({"--ranks", "4", "--tensor-parallel", "2", "--zero", "1", "--threads", "0",
                 "--micro-batch-size", "1", "--steps", "1", "--output", at("run")}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(json["pipeline"][0]["planned_bytes"],
            metrics(home() / "run").back()["memory"]["arena_peak"]);
}

}  // namespace
}  // namespace rankine::test
