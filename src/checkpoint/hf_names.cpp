#include "checkpoint/hf_names.h"

#include <span>
#include <utility>

#include "base/error.h"
#include "model/param_spec.h"

namespace rankine {
namespace {

struct Rule {
  std::string_view ours, theirs;
  bool transposed = false;
};

constexpr Rule gpt2_layer[] = {
    {"attention.q", "attn.c_attn", true}, {"attention.k", "attn.c_attn", true},
    {"attention.v", "attn.c_attn", true}, {"attention.out", "attn.c_proj", true},
    {"mlp.up", "mlp.c_fc", true},         {"mlp.down", "mlp.c_proj", true},
    {"attention_norm", "ln_1"},           {"mlp_norm", "ln_2"},
};
constexpr Rule gpt2_ends[] = {
    {"embedding.tokens", "transformer.wte"},
    {"embedding.positions", "transformer.wpe"},
    {"head.norm", "transformer.ln_f"},
    {"head", "lm_head"},
};
constexpr Rule llama_layer[] = {
    {"attention.q", "self_attn.q_proj"},
    {"attention.k", "self_attn.k_proj"},
    {"attention.v", "self_attn.v_proj"},
    {"attention.out", "self_attn.o_proj"},
    {"attention.q_norm", "self_attn.q_norm"},
    {"attention.k_norm", "self_attn.k_norm"},
    {"mlp.gate", "mlp.gate_proj"},
    {"mlp.up", "mlp.up_proj"},
    {"mlp.down", "mlp.down_proj"},
    {"attention_norm", "input_layernorm"},
    {"mlp_norm", "post_attention_layernorm"},
};
constexpr Rule llama_ends[] = {
    {"embedding.tokens", "model.embed_tokens"},
    {"head.norm", "model.norm"},
    {"head", "lm_head"},
};

const Rule& find_rule(std::span<const Rule> rules, std::string_view module) {
  for (const Rule& rule : rules)
    if (rule.ours == module) return rule;
  throw Error(ErrorKind::internal, fmt::format("no official name for '{}'", module));
}

// "layers.3.mlp.up.weight" -> its official name, without shape and parts.
HfTensor official_tensor(const ModelConfig& config, std::string_view ours) {
  constexpr std::string_view layers = "layers.";
  const bool gpt2 = config.family == Family::gpt2;
  const size_t kind_at = ours.rfind('.');
  const std::string_view kind = ours.substr(kind_at + 1);
  std::string_view module = ours.substr(0, kind_at);
  std::string prefix;
  std::span<const Rule> rules = gpt2 ? std::span<const Rule>(gpt2_ends) : llama_ends;
  if (module.starts_with(layers)) {
    const size_t end = module.find('.', layers.size());
    const std::string_view number = module.substr(layers.size(), end - layers.size());
    prefix = fmt::format("{}.{}.", gpt2 ? "transformer.h" : "model.layers", number);
    module = module.substr(end + 1);
    rules = gpt2 ? std::span<const Rule>(gpt2_layer) : llama_layer;
  }
  const Rule& rule = find_rule(rules, module);
  return {fmt::format("{}{}.{}", prefix, rule.theirs, kind),
          {},
          rule.transposed && kind == "weight",
          {}};
}

}  // namespace

std::vector<HfTensor> hf_tensors(const ModelConfig& config) {
  std::vector<HfTensor> out;
  for (const ParamSpec& spec : model_parameters(config)) {
    HfTensor tensor = official_tensor(config, spec.name);
    const bool follows = !out.empty() && out.back().name == tensor.name;
    if (!follows) {
      tensor.shape = tensor.transposed ? Shape{spec.shape[1], 0} : spec.shape.with(0, 0);
      out.push_back(std::move(tensor));
    }
    HfTensor& target = out.back();
    const int64_t first = target.outputs();
    target.parts.push_back({spec.name, spec.shape, first});
    target.shape = target.shape.with(target.transposed ? 1 : 0, first + spec.shape[0]);
  }
  return out;
}

HfPlace hf_place(const ModelConfig& config, std::string_view parameter,
                 std::vector<int64_t> index) {
  for (const HfTensor& tensor : hf_tensors(config))
    for (const HfPart& part : tensor.parts) {
      if (part.name != parameter) continue;
      index[0] += part.first_row;
      if (tensor.transposed) std::swap(index[0], index[1]);
      return {tensor.name, std::move(index)};
    }
  fail(ErrorKind::internal, "no official tensor holds '{}'", parameter);
}

std::string official_hf_name(const ModelConfig& config, std::string_view name) {
  const std::string prefix = config.family == Family::gpt2 ? "transformer." : "model.";
  const bool bare = !name.starts_with(prefix) && !name.starts_with("lm_head.");
  return bare ? prefix + std::string(name) : std::string(name);
}

bool is_ignored_hf_name(const ModelConfig& config, std::string_view name) {
  if (config.family == Family::gpt2)
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  return name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace rankine
