#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_checkpoints.h"
#include "support/host_weights.h"
#include "support/temporary_folder.h"

// Any byte of any file of a checkpoint, changed: it is refused as data, or nobody reads it.
namespace rankine {
namespace {

namespace fs = std::filesystem;
using test::HostTensors;

HostTensors tensors(float first) {
  HostTensors out;
  out.add("a", {7, 5}, whole({7, 5}));
  out.add("b", {11}, whole({11}));
  for (const NamedTensor& tensor : out.list())
    for (int64_t i = 0; i < tensor.data.elements(); ++i)
      static_cast<float*>(tensor.data.data)[i] = first + static_cast<float>(i);
  return out;
}

// What a reader of the checkpoint is given: state, weights, small files.
std::string contents(const fs::path& folder, Ops& ops) {
  HostTensors w = tensors(0), m = tensors(0);
  const TensorGroup groups[] = {{"weights", w.list()}, {"momentum", m.list()}};
  std::string out = load_checkpoint(folder, groups, ops);
  for (const HostTensors* some : {&w, &m})
    for (const NamedTensor& tensor : some->list())
      out.append(static_cast<const char*>(tensor.data.data),
                 static_cast<size_t>(tensor.data.bytes()));
  for (const auto& [name, text] : read_small_files(folder, read_manifest(folder)))
    out += name + text;
  return out;
}

TEST(Damage, EveryByteOfACheckpointIsCovered) {
  const test::TemporaryFolder folder;
  const auto ops = make_cpu_ops(1);
  const fs::path step = folder / "step-00000012";
  const HostTensors w = tensors(1), m = tensors(100);
  const TensorGroup groups[] = {{"weights", w.list()}, {"momentum", m.list()}};
  save_checkpoint(step, R"({"step":12,"updates":12,"tokens":4096})", groups, *ops,
                  {{"tokenizer.json", R"({"version":"1.0"})"},
                   {"tokenizer_config.json", "{}"},
                   {"generation_config.json", R"({"eos_token_id":[1,2]})"}});
  const std::string whole = contents(step, *ops);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(step)) files.push_back(entry.path());
  ASSERT_EQ(files.size(), 5U);
  const uint64_t seed = 13;
  std::mt19937_64 random(seed);
  for (const fs::path& path : files) {
    const std::string good = read_text(path);
    for (int i = 0; i < 400; ++i) {
      std::string bad = good;
      const size_t at = random() % bad.size();
      // Every other time a digit for a digit, which leaves all text well-formed.
      const bool digit = i % 2 == 0 && std::isdigit(static_cast<unsigned char>(bad[at])) != 0;
      bad[at] = digit ? static_cast<char>('0' + (bad[at] - '0' + 1 + random() % 9) % 10)
                      : static_cast<char>(bad[at] ^ (1 << random() % 8));
      write_text_atomically(path, bad);
      try {
        contents(step, *ops);
        ADD_FAILURE() << "seed " << seed << ": byte " << at << " of " << path << " was accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data)
            << "seed " << seed << ": byte " << at << " of " << path << ": " << error.what();
        EXPECT_NE(std::string(error.what()).find("step-00000012"), std::string::npos);
      }
    }
    for (const size_t size : {size_t{0}, good.size() / 2, good.size() - 1}) {
      write_text_atomically(path, good.substr(0, size));
      EXPECT_THROW(contents(step, *ops), Error) << path << " cut to " << size;
      EXPECT_NE(fault_of(step), "") << path << " cut to " << size;
    }
    write_text_atomically(path, good);
  }
  EXPECT_EQ(contents(step, *ops), whole);
}

}  // namespace
}  // namespace rankine
