#include "checkpoint/hf_refusals.h"

#include <array>
#include <string_view>

#include "base/error.h"

namespace rankine {
namespace {

using nlohmann::json;

enum class Neutral : uint8_t { only_null, no, yes, zero, one };

struct Refusal {
  const char* key;
  Neutral neutral;  // the value (besides null) with which the key means nothing
  const char* reason;
};

constexpr const char* experts = "a mixture of experts";
constexpr const char* caps = "soft-capped scores";
constexpr const char* scales = "scaled activations";
constexpr const char* attention = "another form of attention";
constexpr const char* position = "another position encoding";

constexpr std::array refusals{
    Refusal{"quantization_config", Neutral::only_null, "quantized weights"},
    Refusal{"num_experts", Neutral::zero, experts},
    Refusal{"num_local_experts", Neutral::zero, experts},
    Refusal{"n_routed_experts", Neutral::zero, experts},
    Refusal{"moe_intermediate_size", Neutral::zero, experts},
    Refusal{"scale_attn_by_inverse_layer_idx", Neutral::no, "scores divided by the layer's number"},
    Refusal{"scale_attn_weights", Neutral::yes, "scores that are not scaled"},
    Refusal{"add_cross_attention", Neutral::no, "cross attention"},
    Refusal{"is_encoder_decoder", Neutral::no, "an encoder"},
    Refusal{"attn_logit_softcapping", Neutral::zero, caps},
    Refusal{"final_logit_softcapping", Neutral::zero, caps},
    Refusal{"logits_scaling", Neutral::one, scales},
    Refusal{"logit_scale", Neutral::one, scales},
    Refusal{"embedding_multiplier", Neutral::one, scales},
    Refusal{"residual_multiplier", Neutral::one, scales},
    Refusal{"attention_multiplier", Neutral::only_null, scales},
    Refusal{"query_pre_attn_scalar", Neutral::only_null, scales},
    Refusal{"scale_emb", Neutral::one, scales},
    Refusal{"scale_depth", Neutral::only_null, scales},
    Refusal{"partial_rotary_factor", Neutral::one, position},
    Refusal{"rotary_pct", Neutral::one, position},
    Refusal{"rope_interleaved", Neutral::no, position},
    Refusal{"alibi", Neutral::no, position},
    Refusal{"is_causal", Neutral::yes, "attention that looks ahead"},
    Refusal{"use_bidirectional_attention", Neutral::no, "attention that looks ahead"},
    Refusal{"no_rope_layers", Neutral::only_null, position},
    Refusal{"position_embedding_type", Neutral::only_null, position},
    Refusal{"use_qk_norm", Neutral::no, "normalised queries and keys"},
    Refusal{"qk_layernorm", Neutral::no, "normalised queries and keys"},
    Refusal{"clip_qkv", Neutral::only_null, "clipped queries and keys"},
    Refusal{"q_lora_rank", Neutral::only_null, attention},
    Refusal{"kv_lora_rank", Neutral::only_null, attention},
    Refusal{"attention_chunk_size", Neutral::zero, attention},
    Refusal{"attn_output_gate", Neutral::no, attention},
    Refusal{"use_parallel_residual", Neutral::no, "parallel residual streams"},
};

bool is_neutral(const json& value, Neutral neutral) {
  switch (neutral) {
    case Neutral::only_null:
      return false;
    case Neutral::no:
      return value == false;
    case Neutral::yes:
      return value == true;
    case Neutral::zero:
      return value == 0;
    case Neutral::one:
      return value == 1;
  }
  return false;
}

}  // namespace

void refuse_foreign_keys(const JsonObject& config) {
  for (const Refusal& refusal : refusals) {
    const json* value = config.find(refusal.key);
    if (value == nullptr || is_neutral(*value, refusal.neutral)) continue;
    // The one encoding by this key that is computed here is the one GPT-2 has anyway.
    if (std::string_view(refusal.key) == "position_embedding_type" && *value == "absolute" &&
        config.text_or("model_type", "") == "gpt2")
      continue;
    fail(ErrorKind::data, "{}: '{}' is {}: {} is not supported", config.what(), refusal.key,
         json_excerpt(*value), refusal.reason);
  }
}

}  // namespace rankine
