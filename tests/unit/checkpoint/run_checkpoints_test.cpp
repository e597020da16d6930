#include "checkpoint/run_checkpoints.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "support/errors.h"
#include "support/host_weights.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using test::HostTensors;
using test::message_of;
using test::TemporaryFolder;

class RunCheckpoints : public ::testing::Test {
 protected:
  void save(int64_t step) {
    HostTensors w;
    w.add("a", {4, 3}, whole({4, 3}));
    const TensorGroup group{"weights", w.list()};
    save_checkpoint(checkpoint_folder(folder.path(), step), "{}", {&group, 1}, *ops,
                    {{"tokenizer.json", "{\"a\": 1}"}});
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> out;
    for (const RunCheckpoint& c : run_checkpoints(folder.path())) out.push_back(c.step);
    return out;
  }
  int64_t newest() const {
    const auto found = newest_checkpoint(folder.path()).found;
    return found ? found->step : -1;
  }
  std::string warnings() const {
    std::string out;
    for (const std::string& warning : fallback_warnings(newest_checkpoint(folder.path())))
      out += warning + "\n";
    return out;
  }

  std::unique_ptr<Ops> ops = make_cpu_ops(1);
  TemporaryFolder folder;
};

TEST_F(RunCheckpoints, AreTheFoldersWithTheirVeryNames) {
  EXPECT_TRUE(run_checkpoints(folder / "absent").empty());
  for (const int64_t step : {2, 10, 123456789}) save(step);
  for (const char* name : {"step-00000003-best", "step-3", "step-000000010", "step-00000003.tmp",
                           "astep-00000003", "step-0000000x", "step--0000003"})
    folder.write(std::string(name) + "/notes", "mine");
  EXPECT_EQ(steps(), (std::vector<int64_t>{123456789, 10, 2}));
}

TEST_F(RunCheckpoints, ADamagedOneIsNamedWithTheReasonAndWhatTakesItsPlace) {
  for (const int64_t step : {2, 10, 20, 30}) save(step);
  EXPECT_EQ(newest(), 30);
  EXPECT_EQ(warnings(), "");
  folder.write("step-00000030/tokenizer.json", "{\"a\": 2}");
  fs::resize_file(folder / "step-00000020/rank-00000.safetensors", 20);
  fs::remove(folder / "step-00000010/manifest.json");
  EXPECT_EQ(newest(), 2);
  const std::string said = warnings();
  for (const char* part : {"step-00000030/tokenizer.json' is damaged",
                           "step-00000020/rank-00000.safetensors' has 20 bytes, the manifest says",
                           "step-00000010' is not a checkpoint: it has no manifest.json",
                           "step-00000002' is used instead"})
    EXPECT_NE(said.find(part), std::string::npos) << part << " in " << said;
  fs::remove_all(folder / "step-00000002");
  EXPECT_EQ(newest(), -1);
  EXPECT_EQ(newest_checkpoint(folder.path()).skipped.size(), 3U);
}

TEST_F(RunCheckpoints, PruningRemovesNothingThatIsNotACheckpointOfTheRun) {
  for (int64_t step = 1; step <= 6; ++step) save(step);
  folder.write("step-00000001/notes.txt", "mine");
  folder.write("step-00000003-best/weights", "mine");
  fs::create_directory_symlink(folder / "step-00000003-best", folder / "step-00000000");
  fs::remove(folder / "step-00000002/manifest.json");
  const std::vector<std::string> left =
      prune_checkpoints(folder.path(), {.keep = 2, .last_step = 5});
  // 6 is not of this run yet, 5 and 4 are the newest, 2 is damaged, 1 and 0 hold what is not ours.
  EXPECT_EQ(steps(), (std::vector<int64_t>{6, 5, 4, 2, 1, 0}));
  ASSERT_EQ(left.size(), 1U);
  EXPECT_NE(left[0].find("step-00000001' is kept: it holds 'notes.txt'"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder / "step-00000003-best/weights"));
}

TEST_F(RunCheckpoints, SavingReplacesACheckpointAndNothingElse) {
  save(3);
  fs::remove(folder / "step-00000003/manifest.json");
  save(3);
  EXPECT_EQ(newest(), 3);
  for (const char* file : {"step-00000003/notes.txt", "step-00000004/notes.txt",
                           "step-00000005/tokenizer.json", "step-00000006/a/b"}) {
    folder.write(file, "mine");
    const std::string said = message_of([&] { save(std::stoi(std::string(file).substr(5, 8))); });
    EXPECT_NE(said.find("which is of no checkpoint"), std::string::npos) << said;
    EXPECT_EQ(read_text(folder / file), "mine");
  }
  folder.write("step-00000007", "a file");
  EXPECT_NE(message_of([&] { save(7); }).find("is not a folder"), std::string::npos);
  for (const auto& entry : fs::directory_iterator(folder.path()))
    EXPECT_NE(entry.path().extension(), ".tmp");
}

}  // namespace
}  // namespace rankine
