#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/ops.h"

// A language model as data: every supported family is one set of values here.
namespace rankine {

enum class Family : uint8_t { gpt2, llama, qwen2, qwen3, mistral };
enum class PositionKind : uint8_t { learned, rope };
enum class RopeKind : uint8_t { plain, linear, llama3, yarn };

struct RopeConfig {
  RopeKind kind = RopeKind::plain;
  double theta = 10000;
  double factor = 1;                                 // linear, llama3, yarn
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  int64_t original_positions = 0;                    // llama3, yarn: context length before scaling
  double beta_fast = 32, beta_slow = 1;              // yarn
  double attention_factor = 0;                       // yarn; 0: 0.1 ln(factor) + 1
  bool truncate = true;                              // yarn: round the correction range outwards
  bool operator==(const RopeConfig&) const = default;
};

struct ModelConfig {
  Family family = Family::llama;
  int64_t vocabulary = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int64_t feed_forward = 0;
  int64_t positions = 0;  // longest sequence
  NormKind norm = NormKind::rms;
  double norm_epsilon = 1e-5;
  ActivationKind activation = ActivationKind::swiglu;
  PositionKind position = PositionKind::rope;
  RopeConfig rope;
  bool tied = false;  // the head's matrix is the token embedding
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool qk_norm = false;              // per-head RMS norm of q and k before rope
  int64_t window = 0;                // sliding window of attention, 0: none
  std::vector<bool> layer_windowed;  // per layer; empty: all layers when window > 0
  double initializer_range = 0.02;
  double dropout = 0;  // while training, on the embedding and both residual branches
  int64_t bos = -1, eos = -1, pad = -1;  // token ids, -1: none
  std::vector<int64_t> more_eos;         // further ids that end a text

  int64_t query_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  int64_t layer_window(int64_t layer) const {
    return layer_windowed.empty() || layer_windowed[static_cast<size_t>(layer)] ? window : 0;
  }
  bool operator==(const ModelConfig&) const = default;
};

std::string_view family_name(Family family);  // "gpt2", "llama", ...
// Throws Error{data} naming the first inconsistent value (sizes not positive, heads that do not
// divide, odd head size under rope, ...).
void check(const ModelConfig& config);

// "gpt2", "llama-3.2-1b", "tiny", ...; Error{usage} with the nearest name when unknown.
ModelConfig model_preset(std::string_view name);
std::vector<std::string> model_preset_names();

}  // namespace rankine
