#include "checkpoint/checkpoint.h"

#include <fstream>

#include "base/file.h"
#include "checkpoint/run_checkpoints.h"
#include "support/errors.h"
#include "support/host_weights.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using test::HostTensors;
using test::message_of;
using test::TemporaryFolder;

HostTensors example(float first = 0) {
  HostTensors t;
  t.add("a", {5, 3}, whole({5, 3}));
  t.add("b", {7}, whole({7}));
  t.fill([&] { return first += 1; });
  return t;
}

class CheckpointTest : public ::testing::Test {
 protected:
  void save(const fs::path& to, const std::string& state = R"({"step":3})") {
    const TensorGroup groups[] = {{"weights", weights.list()}, {"momentum", momentum.list()}};
    save_checkpoint(to, state, groups, *ops);
  }
  std::string load(const fs::path& from, const HostTensors& w, const HostTensors& m) {
    const TensorGroup groups[] = {{"weights", w.list()}, {"momentum", m.list()}};
    return load_checkpoint(from, groups, *ops);
  }
  std::string refusal() {
    HostTensors w = example(), m = example();
    return message_of([&] { load(step, w, m); });
  }

  bool only_there(const char* name) const {
    int others = 0;
    for (const auto& entry : fs::directory_iterator(folder.path()))
      others += entry.path().filename() == name ? 0 : 1;
    return others == 0 && fs::exists(folder / name);
  }

  std::unique_ptr<Ops> ops = make_cpu_ops(1);
  TemporaryFolder folder;
  fs::path step = checkpoint_folder(folder.path(), 3);
  HostTensors weights = example(), momentum = example(100);
};

TEST_F(CheckpointTest, LoadsWhatItSaved) {
  save(step);
  EXPECT_EQ(step.filename(), "step-00000003");
  HostTensors w = example(50), m = example(50);
  EXPECT_EQ(load(step, w, m), R"({"step":3})");
  EXPECT_EQ(w, weights);
  EXPECT_EQ(m, momentum);
  HostTensors again = example(50);
  EXPECT_EQ(load_weights(step, again.list(), *ops), R"({"step":3})");
  EXPECT_EQ(again, weights);
  EXPECT_TRUE(only_there("step-00000003"));
}

TEST_F(CheckpointTest, SameContentsGiveSameBytes) {
  save(step);
  save(folder / "other");
  for (const char* name : {"manifest.json", "rank-00000.safetensors"})
    EXPECT_EQ(read_text(step / name), read_text(folder / "other" / name)) << name;
}

TEST_F(CheckpointTest, ReplacesAnEarlierOne) {
  save(step);
  weights = example(9);
  save(step);
  EXPECT_TRUE(only_there("step-00000003"));
  HostTensors w = example();
  load_weights(step, w.list(), *ops);
  EXPECT_EQ(w, weights);
}

TEST_F(CheckpointTest, AFailedSaveLeavesTheOldOne) {
  save(step);
  EXPECT_NE(message_of([&] { save(step, "[1]"); }).find("not a JSON object"), std::string::npos);
  EXPECT_TRUE(only_there("step-00000003"));
  EXPECT_NO_THROW(read_manifest(step));
}

TEST_F(CheckpointTest, NamesTheDamagedFile) {
  save(step);
  const fs::path file = step / "rank-00000.safetensors";
  std::string bytes = read_text(file);
  bytes[bytes.size() - 5] ^= 1;
  folder.write("step-00000003/rank-00000.safetensors", bytes);
  EXPECT_NE(refusal().find("rank-00000.safetensors' is damaged"), std::string::npos);
  bytes.pop_back();
  folder.write("step-00000003/rank-00000.safetensors", bytes);
  EXPECT_NE(refusal().find("bytes, the manifest says"), std::string::npos);
  fs::remove(file);
  EXPECT_NE(refusal().find("is missing; the manifest lists it"), std::string::npos);
  fs::remove(step / "manifest.json");
  EXPECT_NE(refusal().find("is not a checkpoint"), std::string::npos);
}

TEST_F(CheckpointTest, NamesTheTensorThatDoesNotFit) {
  save(step);
  HostTensors wrong;
  wrong.add("a", {3, 5}, whole({3, 5}));
  EXPECT_NE(message_of([&] {
              load_weights(step, wrong.list(), *ops);
            }).find("'weights/a' has shape [5, 3], the model wants [3, 5]"),
            std::string::npos);
  HostTensors missing;
  missing.add("c", {3}, whole({3}));
  EXPECT_NE(message_of([&] {
              load_weights(step, missing.list(), *ops);
            }).find("lacks 1 of the wanted tensors, the first is 'weights/c'"),
            std::string::npos);
  std::vector<NamedTensor> half(weights.list().begin(), weights.list().end());
  half[1].data.dtype = DType::bf16;
  EXPECT_NE(message_of([&] { load_weights(step, half, *ops); }).find("has dtype f32"),
            std::string::npos);
}

TEST_F(CheckpointTest, RefusesPiecesThatLeaveGaps) {
  HostTensors partial;
  partial.add("a", {5, 3}, piece({5, 3}, 0, 0, 2));
  const TensorGroup group{"weights", partial.list()};
  EXPECT_NE(message_of([&] {
              save_checkpoint(step, "{}", {&group, 1}, *ops);
            }).find("files hold 6 of the 15 elements of tensor 'weights/a'"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(step));
}

}  // namespace
}  // namespace rankine
