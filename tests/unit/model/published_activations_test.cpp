#include <gtest/gtest.h>

#include <map>

#include "model/model.h"
#include "support/published.h"

// What a layer keeps for its backward against the activation formulas of Korthikanti et al. (arXiv
// 2205.05198, table 2), with s tokens, b sequences, h hidden, a heads, t tensor ranks, 2 bytes:
// s b h (10 + 24/t + 5 a s / (h t)). Ours keeps less, term by term:
//   - no output of the two norms (2 s b h each) and none of the activation function (8 s b h / t):
//     the backward kernels make them again from their inputs;
//   - no dropout mask (s b h each): masks are a function of the seed and the element's index;
//   - no attention scores, softmax or its dropout (5 a s / (h t)): attention is tiled and keeps one
//     f32 per head and row, 4 s b a / t, which the paper does not have;
// and it counts the norms' statistics (f32 mean and deviation, 16 s b), which the paper neglects.
// Selective recomputation drops attention's scores in the paper, and here its output (2 s b h / t)
// with the f32 per head and row.
namespace rankine {
namespace {

struct PublishedModel {
  int64_t heads, hidden, layers, tensor, pipeline, virtual_stages, batch;
};

std::map<std::string, PublishedModel> published_models() {
  std::map<std::string, PublishedModel> out;
  for (const test::Cells& row : test::published_rows("korthikanti22_table3_configs.csv"))
    out[row[0]] = {std::stoll(row[1]), std::stoll(row[2]), std::stoll(row[3]), std::stoll(row[4]),
                   std::stoll(row[5]), std::stoll(row[6]), std::stoll(row[9])};
  return out;
}

constexpr int64_t tokens = 2048, vocabulary = 51200;  // of all of table 3

struct Mode {
  bool sequence = false;
  Recompute recompute = Recompute::none;
};

// Bytes that describe() says one layer of the first tensor rank keeps of one micro-batch.
double kept_bytes(const PublishedModel& m, const Mode& mode) {
  ModelConfig config = model_preset("gpt2");
  config.vocabulary = vocabulary;
  config.hidden = m.hidden;
  config.layers = m.layers;
  config.heads = config.kv_heads = m.heads;
  config.head_dim = m.hidden / m.heads;
  config.feed_forward = 4 * m.hidden;
  config.positions = tokens;
  config.dropout = 0.1;
  check(config);
  ModelPart part;
  part.split = {.rank = 0, .ranks = static_cast<int>(m.tensor), .sequence = mode.sequence};
  const auto ops = make_cpu_ops(1);
  const BlockDescription layer =
      make_layer(config, 0, part, mode.recompute)->describe(*ops, {m.batch, tokens}, DType::bf16);
  double bytes = 0;
  for (const TensorSpec& saved : layer.saved)
    bytes +=
        static_cast<double>(saved.shape.elements()) * static_cast<double>(dtype_bytes(saved.dtype));
  return bytes;
}

// The paper's bytes of a layer, in units of s b h, and what of them ours does not keep.
struct Formula {
  double published, dropped, added;
};
Formula formula_of(const PublishedModel& m, const Mode& mode) {
  const double t = static_cast<double>(m.tensor), h = static_cast<double>(m.hidden);
  const double heads = static_cast<double>(m.heads);
  const double own = mode.sequence ? t : 1;
  if (mode.recompute == Recompute::full) return {2 / own, 0, 0};
  const double scores = 5 * heads * static_cast<double>(tokens) / (h * t);
  const double norm_outputs = 4 / own, masks = 2 / own, acted = 8 / t, attended = 2 / t;
  const double row_statistics = 4 * heads / (h * t), norm_statistics = 16 / (h * own);
  const bool selective = mode.recompute == Recompute::selective;
  return {10 / own + 24 / t + (selective ? 0 : scores),
          norm_outputs + masks + acted + (selective ? attended : scores),
          norm_statistics + (selective ? 0 : row_statistics)};
}
double unit_of(const PublishedModel& m) {
  return static_cast<double>(tokens * m.batch * m.hidden);
}

class PublishedActivations : public testing::Test {
 protected:
  void SetUp() override {
    if (models_.empty()) GTEST_SKIP() << "no tables in " << test::published_folder();
  }
  // The paper's bytes of a layer, from what ours keeps and the terms that differ.
  double published_bytes(const std::string& model, const Mode& mode) const {
    const PublishedModel& m = models_.at(model);
    const Formula formula = formula_of(m, mode);
    return kept_bytes(m, mode) + (formula.dropped - formula.added) * unit_of(m);
  }
  std::map<std::string, PublishedModel> models_ = published_models();
};

const std::map<std::string, Mode> modes = {
    {"TP baseline", {}},
    {"none (TP only)", {}},
    {"SP", {.sequence = true}},
    {"selective", {.recompute = Recompute::selective}},
    {"selective+SP", {.sequence = true, .recompute = Recompute::selective}},
    {"full recompute", {.recompute = Recompute::full}}};

TEST_F(PublishedActivations, FollowTheFormulasTermByTerm) {
  for (const auto& [name, model] : models_)
    for (const auto& [mode_name, mode] : modes)
      for (const int64_t tensor : {int64_t{1}, model.tensor}) {
        PublishedModel m = model;
        m.tensor = tensor;
        const Formula formula = formula_of(m, mode);
        const double kept = kept_bytes(m, mode);
        EXPECT_NEAR((formula.published - formula.dropped + formula.added) * unit_of(m), kept,
                    1e-12 * kept)
            << name << ", " << mode_name << ", " << tensor << " tensor ranks";
      }
}

// Without parallelism: s b h (34 + 5 a s / h) in the paper, 20 s b h and statistics here.
TEST_F(PublishedActivations, OneRankKeepsTwentyBytesAnElement) {
  PublishedModel m = models_.at("22B");
  m.tensor = 1;
  const double heads = 64, h = 6144;
  EXPECT_DOUBLE_EQ(formula_of(m, {}).published, 34 + 5 * heads * tokens / h);
  EXPECT_DOUBLE_EQ(kept_bytes(m, {}), (20 + (16 + 4 * heads) / h) * unit_of(m));
}

// Activations of the first pipeline rank in GiB.
TEST_F(PublishedActivations, FigureOne) {
  int rows = 0;
  for (const test::Cells& row : test::published_rows("korthikanti22_fig1_memory_per_gpu.csv")) {
    const PublishedModel& m = models_.at(row[0]);
    const auto p = static_cast<double>(m.pipeline);
    const double in_flight =
        m.virtual_stages > 1 ? 1 + (p - 1) / (p * static_cast<double>(m.virtual_stages)) : 1;
    const double bytes =
        published_bytes(row[0], modes.at(row[1])) * static_cast<double>(m.layers) * in_flight;
    EXPECT_NEAR(bytes / (1 << 30), std::stod(row[3]), 1e-6) << row[0] << ", " << row[1];
    ++rows;
  }
  EXPECT_EQ(rows, 8);
}

// In percent; the figure's numbers leave the paper's own formulas by up to 0.14.
TEST_F(PublishedActivations, FigureSeven) {
  int rows = 0;
  for (const test::Cells& row :
       test::published_rows("korthikanti22_fig7_relative_activation.csv")) {
    const double share = published_bytes(row[0], modes.at(row[1])) / published_bytes(row[0], {});
    EXPECT_NEAR(100 * share, std::stod(row[2]), 0.15) << row[0] << ", " << row[1];
    ++rows;
  }
  EXPECT_EQ(rows, 20);
}

}  // namespace
}  // namespace rankine
