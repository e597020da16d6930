#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "model/block_parameters.h"
#include "model/layer_part.h"
#include "support/tiny_models.h"

namespace rankine::test {
namespace {

TensorSpec spec(const std::string& name, int64_t rows = 2) {
  return {name, DType::f32, Shape{rows, 4}};
}

std::vector<std::string> names(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> out;
  for (const TensorSpec& s : specs) out.push_back(s.name);
  return out;
}

using Names = std::vector<std::string>;

std::vector<PartTensors> two_parts() {
  PartTensors a, b;
  a.saved = {{spec("input")},
             {spec("a output"), Recompute::selective},
             {spec("a product"), Recompute::full}};
  a.pending = {spec("a pending")};
  a.forward_scratch = {spec("shared"), spec("a only")};
  b.saved = {{spec("b product"), Recompute::full}};
  b.pending = {spec("b pending")};
  b.forward_scratch = {spec("b only"), spec("shared")};
  b.backward_scratch = {spec("back")};
  return {a, b};
}

TEST(LayerParts, WhatIsKeptComesBeforeWhatIsRecomputed) {
  struct Case {
    Recompute recompute;
    Names saved, recomputed;
    std::vector<size_t> of_a, of_b;
  };
  for (const Case& c :
       {Case{Recompute::none, {"input", "a output", "a product", "b product"}, {}, {0, 1, 2}, {3}},
        Case{Recompute::selective,
             {"input", "a product", "b product"},
             {"a output"},
             {0, 3, 1},
             {2}},
        Case{Recompute::full, {"input"}, {"a output", "a product", "b product"}, {0, 1, 2}, {3}}}) {
    BlockDescription d;
    const std::vector<PartIndices> at = join_parts(two_parts(), c.recompute, d);
    EXPECT_EQ(names(d.saved), c.saved);
    EXPECT_EQ(names(d.recomputed), c.recomputed);
    EXPECT_EQ(at[0].saved, c.of_a);
    EXPECT_EQ(at[1].saved, c.of_b);
  }
}

TEST(LayerParts, ScratchOfOneNameIsSharedAndPendingIsNot) {
  BlockDescription d;
  const std::vector<PartIndices> at = join_parts(two_parts(), Recompute::none, d);
  EXPECT_EQ(names(d.forward_scratch), (Names{"shared", "a only", "b only"}));
  EXPECT_EQ(at[0].forward_scratch, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(at[1].forward_scratch, (std::vector<size_t>{2, 0}));
  EXPECT_EQ(names(d.backward_scratch), (Names{"back"}));
  EXPECT_EQ(names(d.pending), (Names{"a pending", "b pending"}));
  EXPECT_EQ(at[1].pending, (std::vector<size_t>{1}));
}

TEST(LayerParts, SharedScratchOfTwoSizesIsAnErrorOfTheProgram) {
  std::vector<PartTensors> parts = two_parts();
  parts[1].forward_scratch[1] = spec("shared", 3);
  BlockDescription d;
  try {
    join_parts(parts, Recompute::none, d);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::internal);
  }
}

// The name of a group's first parameter, "" of an absent group.
std::string group_name(const std::vector<ParamSpec>& specs, int group) {
  return group < 0 ? "" : joined_groups(specs).at(static_cast<size_t>(group)).name;
}

TEST(BlockParameters, GroupsAreTheMatricesThatTheyAreCalled) {
  for (const TinyModel& model : tiny_models()) {
    const ModelConfig& c = model.config;
    SCOPED_TRACE(model.name);
    const LayerParameters p = layer_parameters(c, 1, {});
    const auto is = [&](int group, bool there, const std::string& name) {
      EXPECT_EQ(group_name(p.specs, group), there ? "layers.1." + name : "");
    };
    const bool gated = c.activation == ActivationKind::swiglu, bias = c.norm == NormKind::layer;
    is(p.attention.qkv.weight, true, "attention.q.weight");
    is(p.attention.qkv.bias, c.qkv_bias, "attention.q.bias");
    is(p.attention.out.weight, true, "attention.out.weight");
    is(p.attention.out.bias, c.out_bias, "attention.out.bias");
    is(p.attention.norm.weight, true, "attention_norm.weight");
    is(p.attention.norm.bias, bias, "attention_norm.bias");
    is(p.attention.q_norm, c.qk_norm, "attention.q_norm.weight");
    is(p.attention.k_norm, c.qk_norm, "attention.k_norm.weight");
    is(p.feed_forward.up.weight, true, gated ? "mlp.gate.weight" : "mlp.up.weight");
    is(p.feed_forward.down.weight, true, "mlp.down.weight");
    is(p.feed_forward.down.bias, c.mlp_bias, "mlp.down.bias");
    is(p.feed_forward.norm.weight, true, "mlp_norm.weight");
    is(p.feed_forward.norm.bias, bias, "mlp_norm.bias");
  }
}

TEST(BlockParameters, TheHeadFindsItsMatrixWhereverItLies) {
  for (const TinyModel& model : tiny_models())
    for (const bool copy : {false, true}) {
      if (copy && !model.config.tied) continue;
      SCOPED_TRACE(model.name + (copy ? " with a copy" : ""));
      const HeadParameters p = head_parameters(model.config, {}, copy);
      EXPECT_EQ(p.tied, model.config.tied && !copy);
      EXPECT_EQ(group_name(p.specs, p.norm.weight), "head.norm.weight");
      if (p.tied)
        EXPECT_EQ(static_cast<size_t>(p.matrix), joined_groups(p.specs).size());
      else
        EXPECT_EQ(group_name(p.specs, p.matrix),
                  model.config.tied ? "embedding.tokens.weight" : "head.weight");
    }
}

// Shoeybi et al. 2019: every rank's parts together are the whole, each element once.
TEST(BlockParameters, PartsOfTheTensorRanksTileTheModel) {
  ModelConfig c = tiny_config(Family::llama);
  c.heads = c.kv_heads = 4;
  c.hidden = 32;
  for (const int ranks : {1, 2, 4}) {
    std::map<std::string, int64_t> held;
    for (int rank = 0; rank < ranks; ++rank)
      for (const ParamSpec& spec : layer_parameters(c, 0, {.rank = rank, .ranks = ranks}).specs)
        if (spec.counted) held[spec.name] += volume(spec.box);
    for (const ParamSpec& spec : layer_parameters(c, 0, {}).specs)
      EXPECT_EQ(held[spec.name], spec.shape.elements()) << spec.name << " on " << ranks;
  }
}

}  // namespace
}  // namespace rankine::test
