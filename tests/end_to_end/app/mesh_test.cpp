#include "mesh_run.h"

// Tensor, sequence and pipeline parallelism as a user asks for them: the losses, checkpoints,
// exports and metrics of one rank.
namespace rankine::test {
namespace {

using Meshes = MeshRun;

constexpr double bound = 1e-4;

TEST_F(Meshes, EveryLayoutTrainsAsOneRank) {
  succeed(train_mesh(1, "alone", {"--eval-interval", "3"}));
  const double validation = metrics(home() / "alone").back()["validation_loss"];
  struct Asked {
    int ranks;
    std::vector<std::string> words;
  };
  const std::vector<Asked> layouts{
      {2, {"--tensor-parallel", "2"}},
      {2, {"--tensor-parallel", "2", "--sequence-parallel"}},
      {4, {"--tensor-model-parallel-size", "4"}},
      {2, {"--pipeline-parallel", "2", "--schedule", "gpipe"}},
      {2, {"--pipeline-parallel", "2", "--schedule", "1f1b"}},
      {2, {"--pipeline-parallel", "2", "--schedule", "interleaved"}},
      {2,
       {"--pipeline-parallel", "2", "--schedule", "interleaved", "--virtual-stages", "2",
        "--stage-layers", "0,2,1,1"}},
      {2, {"--pipeline-parallel", "2", "--schedule", "zero-bubble"}},
      {2, {"--pipeline-parallel", "2", "--schedule", "zb-v"}},
      {4, {"--pipeline-parallel", "4", "--stage-layers", "2,1,1,0"}},
      {4,
       {"--data-parallel", "2", "--tensor-parallel", "2", "--zero", "3", "--mesh-order",
        "tensor,data,pipeline"}},
      {8,
       {"--tp", "2", "--pp", "2", "--dp", "2", "--zero", "2", "--sequence-parallel", "--mesh-order",
        "data,pipeline,tensor"}}};
  for (size_t i = 0; i < layouts.size(); ++i) {
    const std::string name = "mesh" + std::to_string(i);
    std::string asked;
    for (const std::string& word : layouts[i].words) asked += word + " ";
    SCOPED_TRACE(asked);
    auto words = layouts[i].words;
    words.insert(words.end(), {"--eval-interval", "3", "--comm-timeout", "20"});
    succeed(train_mesh(layouts[i].ranks, name, words));
    expect_near_losses(name, "alone", bound);
    const Json last = metrics(home() / name).back();
    EXPECT_NEAR(last["validation_loss"].get<double>(), validation, bound * validation);
    EXPECT_EQ(last["ranks"], layouts[i].ranks);
    EXPECT_EQ(last["memory"]["planned"], last["memory"]["arena_peak"]);
  }
  expect_near_export("mesh1", "alone");
  expect_near_export("mesh11", "alone");
}

TEST_F(Meshes, StrictRunsHaveTheSameBitsOnEveryMeshOfTheSameTensorDegree) {
  succeed(train_mesh(1, "alone", {"--strict", "--dropout", "0.1"}));
  const std::string model = exported("alone");
  ASSERT_GT(model.size(), 10'000u);
  const std::vector<std::pair<int, std::vector<std::string>>> layouts{
      {2, {"--pipeline-parallel", "2", "--schedule", "zb-v"}},
      {4, {"--pipeline-parallel", "2", "--zero", "3"}},
      {4, {"--pipeline-parallel", "4", "--schedule", "zero-bubble"}}};
  for (size_t i = 0; i < layouts.size(); ++i) {
    const std::string name = "mesh" + std::to_string(i);
    auto words = layouts[i].second;
    words.insert(words.end(), {"--strict", "--dropout", "0.1"});
    succeed(train_mesh(layouts[i].first, name, words));
    EXPECT_EQ(numbers(home() / name), numbers(home() / "alone")) << name;
    EXPECT_TRUE(exported(name) == model) << name;
  }
}

TEST_F(Meshes, AScheduleOfAFileTrainsAsItsKindDoes) {
  const fs::path file = home() / "schedule.txt";
  write_text_atomically(file,
                        "# two ranks, three micro-batches\n"
                        "rank 0: 0F0 0F1 0F2 0I0 0I1 0W0 0I2 0W1 0W2 0U\n"
                        "\n"
                        "rank 1: 1F0 1B0 1F1 1B1 1F2 1B2 1U\n");
  const std::vector<std::string> common{"--global-batch-size", "3"};
  succeed(train_mesh(1, "alone", common));
  succeed(train_mesh(
      2, "filed",
      {"--global-batch-size", "3", "--pipeline-parallel", "2", "--schedule", file.string()}));
  expect_near_losses("filed", "alone", bound);
}

TEST_F(Meshes, ACheckpointContinuesOnAnotherMesh) {
  const std::vector<std::string> common{"--steps", "6", "--save-interval", "3"};
  struct Move {
    int from_ranks;
    std::vector<std::string> from;
    int to_ranks;
    std::vector<std::string> to;
  };
  const std::vector<Move> moves{
      {2, {"--tensor-parallel", "2"}, 2, {"--tensor-parallel", "1", "--pipeline-parallel", "2"}},
      {2, {"--zero", "3"}, 2, {"--zero", "0", "--tensor-parallel", "2", "--sequence-parallel"}},
      {2,
       {"--pipeline-parallel", "2", "--schedule", "zb-v"},
       1,
       {"--pipeline-parallel", "1", "--schedule", "1f1b"}}};
  succeed(train_mesh(1, "alone", common));
  for (size_t i = 0; i < moves.size(); ++i) {
    const Move& move = moves[i];
    const std::string name = "moved" + std::to_string(i);
    SCOPED_TRACE(name);
    auto words = move.from;
    words.insert(words.end(), common.begin(), common.end());
    succeed(train_mesh(move.from_ranks, name, words));
    fs::remove_all(home() / name / "step-00000006");
    const Finished done = run(resume_ranks(move.to_ranks, name, move.to));
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_NE(done.err.find("resumed   from step 3"), std::string::npos) << done.err;
    EXPECT_NE(done.err.find("changed   "), std::string::npos) << done.err;
    expect_near_losses(name, "alone", bound);
    expect_near_export(name, "alone");
  }
}

TEST_F(Meshes, MetricsHaveTheTrafficOfEveryAxis) {
  succeed(
      train_mesh(8, "all", {"--tensor-parallel", "2", "--pipeline-parallel", "2", "--zero", "1"}));
  const std::vector<Json> lines = metrics(home() / "all");
  ASSERT_EQ(lines.size(), 3u);
  for (const Json& line : lines) {
    // 4 micro-batches of 32 tokens x 32 activations in f32 to the next pipeline rank.
    EXPECT_EQ(line["bytes_sent"]["pipeline"], 4 * 32 * 32 * 4);
    EXPECT_GT(line["bytes_sent"]["tensor"], 0);
    EXPECT_GT(line["bytes_sent"]["data"], 0);
    for (const char* axis : {"pipeline", "data", "tensor"}) {
      EXPECT_GE(line["exposed_seconds"][axis].get<double>(), 0) << axis;
      EXPECT_LE(line["exposed_seconds"][axis].get<double>(), line["seconds"].get<double>()) << axis;
    }
  }
}

TEST_F(Meshes, AKilledRankEndsTheJobWhichContinues) {
  const std::vector<std::string> layout{"--pipeline-parallel", "2", "--strict", "--lr-decay-style",
                                        "constant"};
  const auto with = [&](const std::vector<std::string>& more) {
    auto words = layout;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  // data 2 x tensor 1 x pipeline 2
  Command command(home(),
                  train_mesh(4, "run", with({"--steps", "1000000", "--save-interval", "5"})));
  ASSERT_TRUE(reaches_step(command, "run", 12)) << command.errors();
  const std::vector<pid_t> all = descendants(command.process());
  ::kill(rank_processes(command, 4)[3], SIGKILL);
  ASSERT_TRUE(command.ends_within(60)) << command.errors();
  EXPECT_TRUE(all_gone(all));
  const Finished ended = command.wait();
  EXPECT_NE(ended.code, 0) << ended.err;
  size_t saved = 0;
  for (const auto& entry : fs::directory_iterator(home() / "run")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && entry.path().extension() != ".tmp")
      saved = std::max<size_t>(saved, std::stoul(name.substr(5)));
  }
  ASSERT_GE(saved, 5u);
  const std::string steps = std::to_string(saved + 3);
  succeed(resume_ranks(4, "run", {"--steps", steps}));
  succeed(train_mesh(4, "whole", with({"--steps", steps})));
  EXPECT_EQ(numbers(home() / "run"), numbers(home() / "whole"));
  EXPECT_TRUE(exported("run") == exported("whole"));
}

}  // namespace
}  // namespace rankine::test
