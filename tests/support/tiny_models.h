#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "model/config.h"

// Small models of every family, with sizes that divide nothing.
namespace rankine::test {

struct TinyModel {
  std::string name;
  ModelConfig config;
};

inline void PrintTo(const TinyModel& model, std::ostream* out) {
  *out << model.name;
}

inline ModelConfig tiny_config(Family family) {
  ModelConfig c;
  c.family = family;
  c.vocabulary = 83;
  c.hidden = 24;
  c.layers = 3;
  c.heads = 3;
  c.kv_heads = 3;
  c.head_dim = 8;
  c.feed_forward = 52;
  c.positions = 32;
  c.initializer_range = 0.2;
  return c;
}

inline std::vector<TinyModel> tiny_models() {
  ModelConfig gpt2 = tiny_config(Family::gpt2);
  gpt2.norm = NormKind::layer;
  gpt2.activation = ActivationKind::gelu_tanh;
  gpt2.position = PositionKind::learned;
  gpt2.tied = gpt2.qkv_bias = gpt2.out_bias = gpt2.mlp_bias = true;
  ModelConfig exact = gpt2;
  exact.activation = ActivationKind::gelu_exact;
  exact.dropout = 0.1;

  ModelConfig llama = tiny_config(Family::llama);
  llama.heads = 4;
  llama.kv_heads = 2;
  llama.rope = {.kind = RopeKind::llama3, .theta = 10000, .factor = 4, .original_positions = 16};
  ModelConfig qwen2 = llama;
  qwen2.family = Family::qwen2;
  qwen2.qkv_bias = qwen2.tied = true;
  qwen2.rope = {.kind = RopeKind::yarn, .theta = 10000, .factor = 2, .original_positions = 16};
  ModelConfig qwen3 = llama;
  qwen3.family = Family::qwen3;
  qwen3.qk_norm = qwen3.tied = true;
  qwen3.head_dim = 10;
  qwen3.dropout = 0.2;
  ModelConfig mistral = llama;
  mistral.family = Family::mistral;
  mistral.kv_heads = 1;
  mistral.window = 5;
  mistral.rope = {.kind = RopeKind::linear, .theta = 10000, .factor = 2};
  return {{"gpt2", gpt2},   {"gpt2_exact_gelu_dropout", exact}, {"llama", llama},
          {"qwen2", qwen2}, {"qwen3_dropout", qwen3},           {"mistral", mistral}};
}

}  // namespace rankine::test
