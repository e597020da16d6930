#include "checkpoint/hf_config.h"

#include <cmath>

#include "checkpoint/json.h"
#include "support/errors.h"

namespace rankine {
namespace {

using nlohmann::json;
using test::message_of;

json base_config(const std::string& type) {
  if (type == "gpt2")
    return {{"model_type", type}, {"n_embd", 32},      {"n_head", 4},
            {"n_layer", 4},       {"n_positions", 64}, {"vocab_size", 60000}};
  return {{"model_type", type},     {"hidden_size", 32},        {"num_attention_heads", 4},
          {"num_hidden_layers", 4}, {"num_key_value_heads", 2}, {"intermediate_size", 48},
          {"vocab_size", 64}};
}

ModelConfig parse(const json& config) {
  return parse_hf_config(config.dump(), "config.json");
}

// The config of a family with further keys.
ModelConfig parse_with(const std::string& type, const json& more) {
  json config = base_config(type);
  config.update(more);
  return parse(config);
}

std::string refusal(const std::string& type, const json& more) {
  return message_of([&] { parse_with(type, more); });
}

TEST(HfConfig, FamilyDefaultsFillMissingKeys) {
  const ModelConfig gpt2 = parse(base_config("gpt2"));
  EXPECT_TRUE(gpt2.tied && gpt2.qkv_bias && gpt2.out_bias && gpt2.mlp_bias);
  EXPECT_EQ(gpt2.feed_forward, 128);
  EXPECT_EQ(gpt2.activation, ActivationKind::gelu_tanh);
  EXPECT_EQ(gpt2.eos, 50256);
  const ModelConfig llama = parse(base_config("llama"));
  EXPECT_FALSE(llama.tied || llama.qkv_bias || llama.out_bias || llama.mlp_bias);
  EXPECT_EQ(llama.head_dim, 8);
  EXPECT_EQ(llama.norm_epsilon, 1e-6);
  EXPECT_EQ(llama.rope.theta, 10000);
  EXPECT_EQ(llama.positions, 2048);
  EXPECT_EQ(llama.bos, 1);
  EXPECT_EQ(llama.eos, 2);
  const ModelConfig qwen2 = parse(base_config("qwen2"));
  EXPECT_TRUE(qwen2.qkv_bias && !qwen2.out_bias);
  EXPECT_EQ(qwen2.eos, -1);
  EXPECT_EQ(qwen2.window, 0);
  const ModelConfig qwen3 = parse(base_config("qwen3"));
  EXPECT_TRUE(qwen3.qk_norm && !qwen3.qkv_bias);
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_EQ(parse(base_config("mistral")).window, 4096);
}

TEST(HfConfig, NullIsNotTheSameAsAbsent) {
  EXPECT_EQ(parse_with("mistral", {{"sliding_window", nullptr}}).window, 0);
  EXPECT_EQ(parse_with("qwen3", {{"head_dim", nullptr}}).head_dim, 8);
  EXPECT_EQ(parse_with("llama", {{"num_key_value_heads", nullptr}}).kv_heads, 4);
  EXPECT_EQ(parse_with("llama", {{"eos_token_id", nullptr}}).eos, -1);
  json absent = base_config("mistral");
  absent.erase("num_key_value_heads");
  absent["num_attention_heads"] = 16;
  absent["head_dim"] = 2;
  EXPECT_EQ(parse(absent).kv_heads, 8);
}

TEST(HfConfig, TokenIdsMayBeLists) {
  const ModelConfig c = parse_with("llama", {{"eos_token_id", {5, 6, 7}}, {"pad_token_id", 9}});
  EXPECT_EQ(c.eos, 5);
  EXPECT_EQ(c.more_eos, (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(c.pad, 9);
}

TEST(HfConfig, WindowsFollowEachFamilysRule) {
  EXPECT_EQ(parse_with("qwen2", {{"sliding_window", 8}}).window, 0) << "not switched on";
  const json on{{"sliding_window", 8}, {"use_sliding_window", true}};
  EXPECT_EQ(parse_with("qwen2", on).window, 0) << "max_window_layers is 28 by default";
  json some = on;
  some["max_window_layers"] = 3;
  const ModelConfig c = parse_with("qwen2", some);
  EXPECT_EQ(c.window, 8);
  EXPECT_EQ(c.layer_windowed, (std::vector<bool>{false, false, false, true}));
  some["max_window_layers"] = 0;
  EXPECT_TRUE(parse_with("qwen2", some).layer_windowed.empty());
  some["layer_types"] = {"sliding_attention", "full_attention", "full_attention", "full_attention"};
  EXPECT_EQ(parse_with("qwen3", some).layer_windowed,
            (std::vector<bool>{true, false, false, false}));
  EXPECT_NE(refusal("llama", {{"layer_types", some["layer_types"]}}).find("contradicts"),
            std::string::npos);
  EXPECT_NE(refusal("qwen3", {{"layer_types", {"linear_attention", "", "", ""}}})
                .find("\"linear_attention\""),
            std::string::npos);
  EXPECT_NE(refusal("qwen3", {{"layer_types", {"full_attention"}}}).find("1 entries for 4 layers"),
            std::string::npos);
}

TEST(HfConfig, ReadsEveryRopeKind) {
  const json llama3{{"rope_type", "llama3"},
                    {"factor", 8.0},
                    {"low_freq_factor", 1.0},
                    {"high_freq_factor", 4.0},
                    {"original_max_position_embeddings", 512}};
  const ModelConfig older = parse_with("llama", {{"rope_theta", 5e5}, {"rope_scaling", llama3}});
  EXPECT_EQ(
      older.rope,
      (RopeConfig{.kind = RopeKind::llama3, .theta = 5e5, .factor = 8, .original_positions = 512}));
  json newer = llama3;
  newer["rope_theta"] = 5e5;
  EXPECT_EQ(parse_with("llama", {{"rope_parameters", newer}}), older);
  EXPECT_EQ(parse_with("llama",
                       {{"rope_parameters", newer}, {"rope_scaling", llama3}, {"rope_theta", 5e5}}),
            older);
  EXPECT_EQ(parse_with("llama", {{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}).rope.kind,
            RopeKind::linear);
  EXPECT_EQ(parse_with("llama", {{"rope_scaling", {{"type", "default"}}}}).rope, RopeConfig{});
  const json yarn{{"type", "yarn"},
                  {"original_max_position_embeddings", 512},
                  {"beta_fast", 16},
                  {"mscale", 1.0},
                  {"mscale_all_dim", 0.5}};
  const RopeConfig rope =
      parse_with("qwen2", {{"rope_scaling", yarn}, {"max_position_embeddings", 2048}}).rope;
  EXPECT_EQ(rope.factor, 4) << "from the two lengths";
  EXPECT_EQ(rope.beta_fast, 16);
  EXPECT_NEAR(rope.attention_factor, (0.1 * std::log(4.0) + 1) / (0.05 * std::log(4.0) + 1), 1e-12);
}

struct Refused {
  const char* family;
  const char* more;
  const char* message;
};

constexpr Refused refused[] = {
    {"llama", R"({"rope_scaling":{"rope_type":"dynamic","factor":2}})",
     "type 'dynamic' is not supported"},
    {"llama", R"({"rope_scaling":{"type":"longrope","factor":2}})", "'longrope'"},
    {"llama", R"({"rope_scaling":{"type":"linear"}})", "lacks 'factor'"},
    {"llama", R"({"rope_scaling":{"type":"linear","factor":2,"short_factor":[1]}})",
     "'short_factor'"},
    {"llama", R"({"rope_scaling":{"type":"llama3","factor":2}})", "needs low_freq_factor"},
    {"llama",
     R"({"rope_scaling":{"type":"linear","factor":2},"rope_parameters":{"rope_type":"default"}})",
     "contradict"},
    {"llama", R"({"rope_parameters":{"rope_theta":5},"rope_theta":6})", "in one place and"},
    {"llama", R"({"rope_parameters":{"full_attention":{"rope_theta":5}}})", "'full_attention'"},
    {"llama", R"({"rope_parameters":{"rope_theta":50,"partial_rotary_factor":0.5}})",
     "partial_rotary_factor"},
    {"llama", R"({"partial_rotary_factor":0.5})", "'partial_rotary_factor' is 0.5"},
    {"llama", R"({"hidden_act":"gelu"})", "hidden_act 'gelu'"},
    {"llama", R"({"quantization_config":{"quant_method":"gptq"}})", "quantized"},
    {"llama", R"({"num_local_experts":8})", "mixture of experts"},
    {"llama", R"({"num_attention_heads":5})", "not a multiple"},
    {"llama", R"({"hidden_size":"32"})", "must be an integer"},
    {"llama", R"({"hidden_size":-32})", "it must lie in"},
    {"llama", R"({"num_hidden_layers":1000000000})", "more than the 65536"},
    {"llama", R"({"attention_bias":1})", "true or false"},
    {"llama", R"({"eos_token_id":[]})", "empty list"},
    {"mistral", R"({"attention_bias":true})", "attention_bias"},
    {"qwen2", R"({"mlp_bias":true})", "mlp_bias"},
    {"gpt2", R"({"scale_attn_by_inverse_layer_idx":true})", "scale_attn_by_inverse_layer_idx"},
    {"gpt2", R"({"scale_attn_weights":false})", "scale_attn_weights"},
    {"gpt2", R"({"add_cross_attention":true})", "cross attention"},
    {"gpt2", R"({"activation_function":"relu"})", "'relu'"},
};

TEST(HfConfig, RefusesWhatItCannotCompute) {
  for (const Refused& r : refused)
    EXPECT_NE(refusal(r.family, json::parse(r.more)).find(r.message), std::string::npos)
        << r.more << "\ngives: " << refusal(r.family, json::parse(r.more));
  for (const char* moe : {"mixtral", "qwen2_moe", "qwen3_moe"})
    EXPECT_NE(refusal("llama", {{"model_type", moe}}).find("mixture of experts"),
              std::string::npos);
  EXPECT_NE(refusal("llama", {{"model_type", "bert"}})
                .find("supported are gpt2, llama, mistral, qwen2, qwen3"),
            std::string::npos);
  EXPECT_NE(refusal("llama", {{"vocab_size", nullptr}}).find("lacks 'vocab_size'"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_hf_config("[]", "config.json"); }).find("must be an object"),
            std::string::npos);
}

TEST(HfConfig, IgnoresHarmlessKeys) {
  const json harmless{{"use_cache", false},          {"transformers_version", "9"},
                      {"attention_dropout", 0.1},    {"pretraining_tp", 2},
                      {"_name_or_path", "x"},        {"num_experts", 0},
                      {"partial_rotary_factor", 1.0}};
  EXPECT_EQ(parse_with("llama", harmless), parse(base_config("llama")));
}

TEST(HfConfig, WritesOnlyWhatTheFamilyCanSay) {
  for (const std::string& name : model_preset_names()) {
    const ModelConfig preset = model_preset(name);
    ModelConfig said = preset;
    said.dropout = 0;
    EXPECT_EQ(parse_hf_config(hf_config_text(preset, DType::bf16), "c"), said) << name;
  }
  ModelConfig c = parse(base_config("llama"));
  c.qkv_bias = true;
  EXPECT_NE(
      message_of([&] { hf_config_text(c, DType::f32); }).find("cannot say this model's biases"),
      std::string::npos);
  c = parse(base_config("gpt2"));
  c.kv_heads = 2;
  EXPECT_NE(message_of([&] { hf_config_text(c, DType::f32); }).find("key/value heads"),
            std::string::npos);
  c = parse(base_config("llama"));
  c.window = 8;
  EXPECT_NE(message_of([&] { hf_config_text(c, DType::f32); }).find("attention windows"),
            std::string::npos);
}

TEST(HfConfig, GenerationConfigHasTheKnownIds) {
  ModelConfig c = parse_with("llama", {{"eos_token_id", {5, 6}}});
  const json text = json::parse(hf_generation_config_text(c));
  EXPECT_EQ(text["eos_token_id"], json({5, 6}));
  EXPECT_EQ(text["bos_token_id"], 1);
  EXPECT_FALSE(text.contains("pad_token_id"));
  c.bos = c.eos = -1;
  EXPECT_EQ(hf_generation_config_text(c), "");
}

}  // namespace
}  // namespace rankine
