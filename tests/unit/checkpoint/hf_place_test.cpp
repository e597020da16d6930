#include <gtest/gtest.h>

#include "checkpoint/hf_names.h"
#include "support/tiny_models.h"

// Messages name weights as the files that a user has call them.
namespace rankine::test {
namespace {

using Index = std::vector<int64_t>;

TEST(HfPlace, IsTheOfficialTensorAndIndex) {
  const ModelConfig llama = tiny_models()[2].config;
  const HfPlace up = hf_place(llama, "layers.2.mlp.up.weight", {3, 5});
  EXPECT_EQ(up.name, "model.layers.2.mlp.up_proj.weight");
  EXPECT_EQ(up.index, (Index{3, 5}));
  EXPECT_EQ(hf_place(llama, "head.norm.weight", {4}).name, "model.norm.weight");
}

TEST(HfPlace, FollowsJoinedAndTransposedOnes) {
  const ModelConfig gpt2 = tiny_models()[0].config;  // 3 heads of 8: q, k, v of 24 rows each
  const HfPlace key = hf_place(gpt2, "layers.0.attention.k.weight", {2, 7});
  EXPECT_EQ(key.name, "transformer.h.0.attn.c_attn.weight");
  EXPECT_EQ(key.index, (Index{7, 24 + 2}));
  const HfPlace bias = hf_place(gpt2, "layers.0.attention.v.bias", {1});
  EXPECT_EQ(bias.name, "transformer.h.0.attn.c_attn.bias");
  EXPECT_EQ(bias.index, (Index{48 + 1}));
}

}  // namespace
}  // namespace rankine::test
