#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_model.h"
#include "support/host_weights.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using Random = std::mt19937_64;

int64_t draw(Random& random, int64_t lowest, int64_t highest) {
  return lowest + static_cast<int64_t>(random() % static_cast<uint64_t>(highest - lowest + 1));
}
bool flip(Random& random) {
  return draw(random, 0, 1) == 1;
}

RopeConfig random_rope(Random& random) {
  RopeConfig rope;
  rope.kind = static_cast<RopeKind>(draw(random, 0, 3));
  rope.theta = static_cast<double>(draw(random, 2, 1000000)) / 7 + 1;
  if (rope.kind != RopeKind::plain) rope.factor = static_cast<double>(draw(random, 8, 99)) / 7;
  if (rope.kind == RopeKind::llama3 || rope.kind == RopeKind::yarn)
    rope.original_positions = draw(random, 1, 99);
  if (rope.kind == RopeKind::llama3) rope.low_freq_factor = 1.1;
  if (rope.kind == RopeKind::yarn) {
    rope.beta_fast = static_cast<double>(draw(random, 3, 40));
    rope.attention_factor = flip(random) ? 1.3 : 0;
    rope.truncate = flip(random);
  }
  return rope;
}

void set_windows(Random& random, ModelConfig& c) {
  const bool qwen = c.family == Family::qwen2 || c.family == Family::qwen3;
  if ((!qwen && c.family != Family::mistral) || flip(random)) return;
  c.window = draw(random, 1, 30);
  if (!qwen || c.layers == 1 || flip(random)) return;
  for (int64_t i = 0; i < c.layers; ++i) c.layer_windowed.push_back(flip(random));
  c.layer_windowed.front() = true;
  c.layer_windowed.back() = false;
}

ModelConfig random_config(Random& random) {
  ModelConfig c;
  c.family = static_cast<Family>(draw(random, 0, 4));
  c.vocabulary = draw(random, 1, 90);
  c.layers = draw(random, 1, 3);
  c.kv_heads = draw(random, 1, 3);
  c.heads = c.kv_heads * draw(random, 1, 3);
  c.head_dim = 2 * draw(random, 1, 6);
  c.hidden = draw(random, 1, 40);
  c.feed_forward = draw(random, 1, 50);
  c.positions = draw(random, 1, 40);
  c.norm_epsilon = 1.0 / static_cast<double>(draw(random, 100, 10000000));
  c.initializer_range = static_cast<double>(draw(random, 1, 100)) / 997;
  c.tied = flip(random);
  c.bos = draw(random, -1, c.vocabulary - 1);
  c.eos = draw(random, -1, c.vocabulary - 1);
  c.pad = draw(random, -1, c.vocabulary - 1);
  if (c.eos >= 0 && flip(random)) c.more_eos = {0, c.vocabulary - 1};
  if (c.family == Family::gpt2) {
    c.kv_heads = c.heads;
    c.hidden = c.heads * c.head_dim;
    c.norm = NormKind::layer;
    c.position = PositionKind::learned;
    c.activation = flip(random) ? ActivationKind::gelu_tanh : ActivationKind::gelu_exact;
    c.qkv_bias = c.out_bias = c.mlp_bias = true;
    return c;
  }
  c.rope = random_rope(random);
  const bool bias = (c.family == Family::llama || c.family == Family::qwen3) && flip(random);
  c.qkv_bias = bias || c.family == Family::qwen2;
  c.out_bias = bias;
  c.mlp_bias = c.family == Family::llama && flip(random);
  c.qk_norm = c.family == Family::qwen3;
  set_windows(random, c);
  return c;
}

// The parameters cut into pieces along a random dim each, as the ranks of a mesh would hold them.
test::HostTensors random_pieces(Random& random, const ModelConfig& config) {
  test::HostTensors out;
  for (const ParamSpec& spec : model_parameters(config)) {
    const int dim = static_cast<int>(draw(random, 0, spec.shape.rank() - 1));
    const int64_t parts = std::min<int64_t>(spec.shape[dim], draw(random, 1, 3));
    for (int64_t i = 0; i < parts; ++i)
      out.add(spec.name, spec.shape, piece(spec.shape, dim, i, parts));
  }
  return out;
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    out[entry.path().filename().string()] = read_text(entry.path());
  return out;
}

TEST(ExportRoundTrip, ExportImportExportIsByteIdentical) {
  const std::unique_ptr<Ops> ops = make_cpu_ops(1);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const ModelConfig config = random_config(random);
    const test::TemporaryFolder folder;
    HfExport options{.dtype = static_cast<DType>(draw(random, 1, 3))};
    if (flip(random)) options.max_shard_bytes = static_cast<uint64_t>(draw(random, 1, 30000));
    const test::HostTensors weights = test::random_weights(config, seed);
    export_hf(folder / "a", config, weights.list(), options, *ops);

    const ModelConfig read = read_hf_config(folder / "a/config.json");
    ASSERT_EQ(read, config);
    const test::HostTensors pieces = random_pieces(random, read);
    EXPECT_TRUE(import_hf(folder / "a", read, pieces.list(), *ops).empty());
    export_hf(folder / "b", read, pieces.list(), options, *ops);
    ASSERT_EQ(contents(folder / "a"), contents(folder / "b"));

    if (options.dtype != DType::f32) continue;
    const test::HostTensors again = test::whole_weights(config);
    import_hf(folder / "b", config, again.list(), *ops);
    ASSERT_EQ(again, weights);
  }
}

}  // namespace
}  // namespace rankine
