#include <algorithm>

#include "base/error.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/hf_rope.h"

namespace rankine {
namespace {

using nlohmann::ordered_json;

const char* architecture(Family family) {
  switch (family) {
    case Family::gpt2:
      return "GPT2LMHeadModel";
    case Family::llama:
      return "LlamaForCausalLM";
    case Family::qwen2:
      return "Qwen2ForCausalLM";
    case Family::qwen3:
      return "Qwen3ForCausalLM";
    case Family::mistral:
      return "MistralForCausalLM";
  }
  return "";
}

const char* torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    default:
      return "float32";
  }
}

ordered_json id_or_null(int64_t id) {
  return id < 0 ? ordered_json() : ordered_json(id);
}

ordered_json eos_ids(const ModelConfig& c) {
  if (c.more_eos.empty()) return id_or_null(c.eos);
  std::vector<int64_t> ids{c.eos};
  ids.insert(ids.end(), c.more_eos.begin(), c.more_eos.end());
  return ids;
}

void add_gpt2(const ModelConfig& c, ordered_json& out) {
  out["n_embd"] = c.hidden;
  out["n_layer"] = c.layers;
  out["n_head"] = c.heads;
  out["n_inner"] = c.feed_forward;
  out["n_positions"] = c.positions;
  out["activation_function"] = c.activation == ActivationKind::gelu_exact ? "gelu" : "gelu_new";
  out["layer_norm_epsilon"] = c.norm_epsilon;
  out["scale_attn_weights"] = true;
  // Dropout is the run's choice and not the model's; transformers would assume 0.1.
  for (const char* key : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) out[key] = 0.0;
}

void add_windows(const ModelConfig& c, ordered_json& out) {
  if (c.family == Family::mistral) out["sliding_window"] = id_or_null(c.window > 0 ? c.window : -1);
  if (c.family != Family::qwen2 && c.family != Family::qwen3) return;
  out["use_sliding_window"] = c.window > 0;
  out["sliding_window"] = id_or_null(c.window > 0 ? c.window : -1);
  // Older readers know only where the windowed layers begin, newer ones take the list.
  int64_t first = 0;
  while (first < c.layers && c.layer_window(first) == 0) ++first;
  out["max_window_layers"] = first;
  ordered_json types = ordered_json::array();
  for (int64_t layer = 0; layer < c.layers; ++layer)
    types.push_back(c.layer_window(layer) > 0 ? "sliding_attention" : "full_attention");
  out["layer_types"] = types;
}

void add_rope_family(const ModelConfig& c, ordered_json& out) {
  out["hidden_size"] = c.hidden;
  out["num_hidden_layers"] = c.layers;
  out["num_attention_heads"] = c.heads;
  out["num_key_value_heads"] = c.kv_heads;
  out["head_dim"] = c.head_dim;
  out["intermediate_size"] = c.feed_forward;
  out["max_position_embeddings"] = c.positions;
  out["hidden_act"] = "silu";
  out["rms_norm_eps"] = c.norm_epsilon;
  if (c.family == Family::llama || c.family == Family::qwen3) out["attention_bias"] = c.out_bias;
  if (c.family == Family::llama) out["mlp_bias"] = c.mlp_bias;
  out["attention_dropout"] = 0.0;
  out["rope_theta"] = c.rope.theta;
  out["rope_scaling"] = hf_rope_scaling(c.rope);
  add_windows(c, out);
}

// The config in the one form that parse_hf_config gives: values that nothing reads at their
// defaults, windows per layer only where layers differ, the run's choices left out.
ModelConfig in_normal_form(ModelConfig c) {
  c.dropout = 0;
  if (c.position == PositionKind::learned || c.rope.kind == RopeKind::plain) {
    const double theta = c.position == PositionKind::learned ? RopeConfig{}.theta : c.rope.theta;
    c.rope = RopeConfig{};
    c.rope.theta = theta;
  }
  int64_t windowed = 0;
  for (int64_t layer = 0; layer < c.layers; ++layer) windowed += c.layer_window(layer) > 0 ? 1 : 0;
  if (windowed == 0) c.window = 0;
  if (windowed == 0 || windowed == c.layers) c.layer_windowed.clear();
  return c;
}

void require_expressible(const ModelConfig& wanted, const ModelConfig& said) {
  const auto same = [&](bool equal, const char* name) {
    require(equal, ErrorKind::data, "the config.json of a {} model cannot say this model's {}",
            family_name(wanted.family), name);
  };
  same(wanted.kv_heads == said.kv_heads, "number of key/value heads");
  same(wanted.head_dim == said.head_dim, "head size");
  same(wanted.norm == said.norm, "kind of norm");
  same(wanted.activation == said.activation, "activation");
  same(wanted.position == said.position, "position encoding");
  same(wanted.rope == said.rope, "rotary embedding");
  same(wanted.qkv_bias == said.qkv_bias && wanted.out_bias == said.out_bias &&
           wanted.mlp_bias == said.mlp_bias,
       "biases");
  same(wanted.qk_norm == said.qk_norm, "norm of queries and keys");
  same(wanted.window == said.window && wanted.layer_windowed == said.layer_windowed,
       "attention windows");
  same(wanted.bos == said.bos && wanted.eos == said.eos && wanted.pad == said.pad &&
           wanted.more_eos == said.more_eos,
       "special tokens");
  same(wanted == said, "sizes");
}

}  // namespace

std::string hf_config_text(const ModelConfig& config, DType stored) {
  check(config);
  ordered_json out;
  out["architectures"] = {architecture(config.family)};
  out["model_type"] = family_name(config.family);
  out["torch_dtype"] = torch_dtype(stored);
  out["vocab_size"] = config.vocabulary;
  if (config.family == Family::gpt2) {
    add_gpt2(config, out);
  } else {
    add_rope_family(config, out);
  }
  out["initializer_range"] = config.initializer_range;
  out["tie_word_embeddings"] = config.tied;
  out["bos_token_id"] = id_or_null(config.bos);
  out["eos_token_id"] = eos_ids(config);
  out["pad_token_id"] = id_or_null(config.pad);
  out["use_cache"] = true;
  std::string text = out.dump(2) + "\n";
  require_expressible(in_normal_form(config), parse_hf_config(text, "the new config.json"));
  return text;
}

std::string hf_generation_config_text(const ModelConfig& config) {
  if (config.bos < 0 && config.eos < 0) return "";
  ordered_json out;
  out["_from_model_config"] = true;
  if (config.bos >= 0) out["bos_token_id"] = config.bos;
  if (config.eos >= 0) out["eos_token_id"] = eos_ids(config);
  if (config.pad >= 0) out["pad_token_id"] = config.pad;
  return out.dump(2) + "\n";
}

}  // namespace rankine
