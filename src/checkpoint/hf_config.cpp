#include "checkpoint/hf_config.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/hf_refusals.h"
#include "checkpoint/hf_rope.h"
#include "checkpoint/json.h"

namespace rankine {
namespace {

using nlohmann::json;

constexpr int64_t most = (int64_t{1} << 31) - 1;
constexpr int64_t most_layers = 1 << 16;

// What transformers assumes for keys that a family's config.json leaves out.
struct Defaults {
  Family family;
  int64_t positions, kv_heads, head_dim;  // 0: kv_heads = heads, head_dim = hidden / heads
  int64_t bos, eos;
};
constexpr std::array<Defaults, 4> rope_families{{
    {Family::llama, 2048, 0, 0, 1, 2},
    {Family::mistral, 131072, 8, 0, 1, 2},
    {Family::qwen2, 32768, 32, 0, -1, -1},
    {Family::qwen3, 32768, 32, 128, -1, -1},
}};

// The raw value, where null must be told from absent.
const json* raw(const json& root, const char* key) {
  const auto at = root.find(key);
  return at == root.end() ? nullptr : &*at;
}

struct Ids {
  int64_t bos, eos;
};

// Token ids: absent means the family's default, as far as the vocabulary has it.
void read_token_ids(const json& root, const JsonObject& object, Ids defaults, ModelConfig& c) {
  const auto one = [&](const char* key, int64_t fallback) {
    if (raw(root, key) == nullptr) return fallback < c.vocabulary ? fallback : -1;
    return object.maybe_integer(key, -1, most).value_or(-1);
  };
  c.bos = one("bos_token_id", defaults.bos);
  c.pad = one("pad_token_id", -1);
  const json* eos = object.find("eos_token_id");
  if (eos == nullptr || !eos->is_array()) {
    c.eos = one("eos_token_id", defaults.eos);
    return;
  }
  for (const json& id : *eos)
    c.more_eos.push_back(json_integer(id, object.what() + ": 'eos_token_id'", 0, most));
  require(!c.more_eos.empty(), ErrorKind::data, "{}: 'eos_token_id' is an empty list",
          object.what());
  c.eos = c.more_eos.front();
  c.more_eos.erase(c.more_eos.begin());
}

void read_gpt2(const json& root, const JsonObject& object, ModelConfig& c) {
  const auto size = [&](const char* key, const char* other) {
    return object.integer(object.find(key) != nullptr ? key : other, 1, most);
  };
  c.hidden = size("n_embd", "hidden_size");
  c.layers = std::min(size("n_layer", "num_hidden_layers"), most_layers + 1);
  c.heads = c.kv_heads = size("n_head", "num_attention_heads");
  c.positions =
      size("n_positions", object.find("n_ctx") != nullptr ? "n_ctx" : "max_position_embeddings");
  c.feed_forward = object.maybe_integer("n_inner", 1, most).value_or(4 * c.hidden);
  require(c.hidden % c.heads == 0, ErrorKind::data, "{}: n_embd {} is not a multiple of n_head {}",
          object.what(), c.hidden, c.heads);
  c.head_dim = c.hidden / c.heads;
  c.norm = NormKind::layer;
  c.norm_epsilon = object.number_or("layer_norm_epsilon", 1e-5);
  c.position = PositionKind::learned;
  c.qkv_bias = c.out_bias = c.mlp_bias = true;
  c.tied = object.flag_or("tie_word_embeddings", true);
  const std::string name = object.text_or("activation_function", "gelu_new");
  const bool tanh_form = name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast";
  require(tanh_form || name == "gelu", ErrorKind::data,
          "{}: activation_function '{}' is not supported; supported are gelu_new and gelu",
          object.what(), name);
  c.activation = tanh_form ? ActivationKind::gelu_tanh : ActivationKind::gelu_exact;
  read_token_ids(root, object, {50256, 50256}, c);
}

// Which layers attend through the window. Qwen lists them, or says where they begin; the others
// have one rule for all layers.
void read_windows(const json& root, const JsonObject& object, ModelConfig& c) {
  const bool qwen = c.family == Family::qwen2 || c.family == Family::qwen3;
  int64_t first_windowed = 0;
  if (c.family == Family::mistral || (qwen && object.flag_or("use_sliding_window", false))) {
    const bool absent = raw(root, "sliding_window") == nullptr;
    c.window = absent ? 4096 : object.maybe_integer("sliding_window", 1, most).value_or(0);
    if (qwen) first_windowed = object.maybe_integer("max_window_layers", 0, most).value_or(28);
  }
  std::vector<bool> windowed(static_cast<size_t>(c.layers));
  for (size_t i = 0; i < windowed.size(); ++i)
    windowed[i] = c.window > 0 && static_cast<int64_t>(i) >= first_windowed;
  if (object.find("layer_types") != nullptr) {
    const json& types = object.array("layer_types");
    require(types.size() == windowed.size(), ErrorKind::data,
            "{}: 'layer_types' has {} entries for {} layers", object.what(), types.size(),
            c.layers);
    for (size_t i = 0; i < windowed.size(); ++i) {
      const bool sliding = types[i] == "sliding_attention";
      require(sliding || types[i] == "full_attention", ErrorKind::data,
              "{}: attention of type {} is not supported", object.what(), json_excerpt(types[i]));
      require(qwen || sliding == windowed[i], ErrorKind::data,
              "{}: 'layer_types' with '{}' contradicts what a {} model does", object.what(),
              types[i].get_ref<const std::string&>(), family_name(c.family));
      windowed[i] = sliding && c.window > 0;
    }
  }
  const auto count = std::count(windowed.begin(), windowed.end(), true);
  if (count == 0) c.window = 0;
  if (count > 0 && count < c.layers) c.layer_windowed = windowed;
}

void read_rope_family(const json& root, const JsonObject& object, const Defaults& defaults,
                      ModelConfig& c) {
  c.hidden = object.integer("hidden_size", 1, most);
  c.layers = object.integer("num_hidden_layers", 1, most);
  c.heads = object.integer("num_attention_heads", 1, most);
  c.feed_forward = object.integer("intermediate_size", 1, most);
  c.positions =
      object.maybe_integer("max_position_embeddings", 1, most).value_or(defaults.positions);
  const bool kv_absent = raw(root, "num_key_value_heads") == nullptr && defaults.kv_heads > 0;
  c.kv_heads = object.maybe_integer("num_key_value_heads", 1, most)
                   .value_or(kv_absent ? defaults.kv_heads : c.heads);
  const bool dim_absent = raw(root, "head_dim") == nullptr && defaults.head_dim > 0;
  c.head_dim = dim_absent ? defaults.head_dim
                          : object.maybe_integer("head_dim", 1, most).value_or(c.hidden / c.heads);
  require(object.find("head_dim") != nullptr || dim_absent || c.hidden % c.heads == 0,
          ErrorKind::data, "{}: hidden_size {} is not a multiple of num_attention_heads {}",
          object.what(), c.hidden, c.heads);
  c.norm_epsilon = object.number_or("rms_norm_eps", 1e-6);
  const std::string activation = object.text_or("hidden_act", "silu");
  require(activation == "silu" || activation == "swish", ErrorKind::data,
          "{}: hidden_act '{}' is not supported, only silu is", object.what(), activation);
  c.tied = object.flag_or("tie_word_embeddings", false);
  const bool bias = object.flag_or("attention_bias", false);
  const bool may_have_bias = c.family == Family::llama || c.family == Family::qwen3;
  require(may_have_bias || !bias, ErrorKind::data,
          "{}: attention_bias is true, which a {} model does not know", object.what(),
          family_name(c.family));
  c.qkv_bias = bias || c.family == Family::qwen2;
  c.out_bias = bias;
  c.mlp_bias = object.flag_or("mlp_bias", false);
  require(c.family == Family::llama || !c.mlp_bias, ErrorKind::data,
          "{}: mlp_bias is true, which a {} model does not know", object.what(),
          family_name(c.family));
  c.qk_norm = c.family == Family::qwen3;
  c.rope = parse_hf_rope(object, c.positions);
  read_token_ids(root, object, {defaults.bos, defaults.eos}, c);
}

const Defaults* rope_family(const std::string& model_type) {
  for (const Defaults& defaults : rope_families)
    if (family_name(defaults.family) == model_type) return &defaults;
  return nullptr;
}

}  // namespace

ModelConfig parse_hf_config(std::string_view text, std::string_view what) {
  const json root = parse_json(text, what);
  const JsonObject object(root, what);
  const std::string& type = object.text("model_type");
  require(type != "mixtral" && type.find("moe") == std::string::npos, ErrorKind::data,
          "{}: model_type '{}' is a mixture of experts, which is not supported", what, type);
  const Defaults* defaults = rope_family(type);
  require(type == "gpt2" || defaults != nullptr, ErrorKind::data,
          "{}: model_type '{}' is not supported; supported are gpt2, llama, mistral, qwen2, qwen3",
          what, type);
  refuse_foreign_keys(object);
  ModelConfig config;
  config.vocabulary = object.integer("vocab_size", 1, most);
  config.initializer_range = object.number_or("initializer_range", 0.02);
  if (defaults == nullptr) {
    config.family = Family::gpt2;
    read_gpt2(root, object, config);
  } else {
    config.family = defaults->family;
    read_rope_family(root, object, *defaults, config);
  }
  require(config.layers <= most_layers, ErrorKind::data,
          "{}: {} layers are more than the {} supported", what, config.layers, most_layers);
  read_windows(root, object, config);
  check(config);
  return config;
}

ModelConfig read_hf_config(const std::filesystem::path& file) {
  return parse_hf_config(read_text(file, uint64_t{1} << 24), fmt::format("'{}'", file.string()));
}

}  // namespace rankine
