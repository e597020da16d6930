#include <array>

#include "base/error.h"
#include "base/text.h"
#include "model/config.h"

namespace rankine {
namespace {

ModelConfig gpt2(int64_t hidden, int64_t layers, int64_t heads) {
  ModelConfig c;
  c.family = Family::gpt2;
  c.vocabulary = 50257;
  c.hidden = hidden;
  c.layers = layers;
  c.heads = c.kv_heads = heads;
  c.head_dim = hidden / heads;
  c.feed_forward = 4 * hidden;
  c.positions = 1024;
  c.norm = NormKind::layer;
  c.activation = ActivationKind::gelu_tanh;
  c.position = PositionKind::learned;
  c.tied = c.qkv_bias = c.out_bias = c.mlp_bias = true;
  c.bos = c.eos = 50256;
  return c;
}

struct Sizes {
  int64_t vocabulary, hidden, layers, heads, kv_heads, head_dim, feed_forward, positions;
};

ModelConfig rotary(Family family, const Sizes& s, double theta) {
  ModelConfig c;
  c.family = family;
  c.vocabulary = s.vocabulary;
  c.hidden = s.hidden;
  c.layers = s.layers;
  c.heads = s.heads;
  c.kv_heads = s.kv_heads;
  c.head_dim = s.head_dim;
  c.feed_forward = s.feed_forward;
  c.positions = s.positions;
  c.rope.theta = theta;
  return c;
}

ModelConfig llama3(const Sizes& sizes, double factor) {
  ModelConfig c = rotary(Family::llama, sizes, 500000);
  if (factor > 1) {
    c.rope.kind = RopeKind::llama3;
    c.rope.factor = factor;
    c.rope.original_positions = 8192;
  }
  c.bos = 128000;
  c.eos = 128001;
  return c;
}

ModelConfig qwen(Family family, const Sizes& sizes) {
  ModelConfig c = rotary(family, sizes, 1e6);
  c.norm_epsilon = 1e-6;
  c.tied = true;
  c.qkv_bias = family == Family::qwen2;
  c.qk_norm = family == Family::qwen3;
  c.bos = 151643;
  c.eos = family == Family::qwen3 ? 151645 : 151643;
  return c;
}

ModelConfig with_tied_head(ModelConfig c) {
  c.tied = true;
  return c;
}

struct Preset {
  std::string_view name;
  ModelConfig (*make)();
};

constexpr std::array presets{
    Preset{
        "tiny",
        [] {
          return with_tied_head(rotary(Family::llama, {257, 256, 6, 8, 4, 32, 704, 1024}, 10000));
        }},
    Preset{"gpt2", [] { return gpt2(768, 12, 12); }},
    Preset{"gpt2-medium", [] { return gpt2(1024, 24, 16); }},
    Preset{"gpt2-large", [] { return gpt2(1280, 36, 20); }},
    Preset{"gpt2-xl", [] { return gpt2(1600, 48, 25); }},
    Preset{"llama-3.2-1b",
           [] {
             return with_tied_head(llama3({128256, 2048, 16, 32, 8, 64, 8192, 131072}, 32));
           }},
    Preset{"llama-3.2-3b",
           [] {
             return with_tied_head(llama3({128256, 3072, 28, 24, 8, 128, 8192, 131072}, 32));
           }},
    Preset{"llama-3-8b",
           [] {
             return llama3({128256, 4096, 32, 32, 8, 128, 14336, 8192}, 1);
           }},
    Preset{"llama-3.1-8b",
           [] {
             return llama3({128256, 4096, 32, 32, 8, 128, 14336, 131072}, 8);
           }},
    Preset{"qwen2.5-0.5b",
           [] {
             return qwen(Family::qwen2, {151936, 896, 24, 14, 2, 64, 4864, 32768});
           }},
    Preset{"qwen3-0.6b",
           [] {
             return qwen(Family::qwen3, {151936, 1024, 28, 16, 8, 128, 3072, 40960});
           }},
    Preset{"qwen3-1.7b",
           [] {
             return qwen(Family::qwen3, {151936, 2048, 28, 16, 8, 128, 6144, 40960});
           }},
    Preset{"mistral-7b", [] {
             ModelConfig c =
                 rotary(Family::mistral, {32000, 4096, 32, 32, 8, 128, 14336, 32768}, 10000);
             c.window = 4096;
             c.bos = 1;
             c.eos = 2;
             return c;
           }}};

}  // namespace

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets) names.emplace_back(preset.name);
  return names;
}

ModelConfig model_preset(std::string_view name) {
  for (const Preset& preset : presets)
    if (preset.name == name) return preset.make();
  const std::vector<std::string> names = model_preset_names();
  const std::string near = nearest_name(name, names);
  std::string list;
  for (const std::string& other : names) list += (list.empty() ? "" : ", ") + other;
  fail(ErrorKind::usage,
       "model '{}' is neither a folder with a config.json nor a preset{}; presets: {}", name,
       near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), list);
}

}  // namespace rankine
