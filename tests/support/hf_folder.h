#pragma once
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"

// Tiny models as folders in Hugging Face's layout, written without the product's own writers. All
// weights are multiples of 1/64 below 2, which every dtype of files holds exactly.
namespace rankine::test {

using Json = nlohmann::json;

struct HfWeight {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

struct HfModel {
  Json config;
  std::map<std::string, HfWeight> weights;
};

struct HfModelSizes {
  int64_t vocabulary = 64, hidden = 16, layers = 2, heads = 2, kv_heads = 1, head_dim = 8;
  int64_t feed_forward = 24, positions = 256;
  bool tied = false;
  uint64_t seed = 1;
};

class HfWeightMaker {
 public:
  HfWeightMaker(HfModel& model, uint64_t seed) : model_(model), random_(seed) {}
  // Values around `centre`, at most `spread`/64 off.
  void add(const std::string& name, std::vector<int64_t> shape, int spread = 32,
           double centre = 0) {
    HfWeight& weight = model_.weights[name];
    size_t count = 1;
    for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
    weight.shape = std::move(shape);
    for (size_t i = 0; i < count; ++i) {
      const auto step = static_cast<int64_t>(random_() % static_cast<uint64_t>(2 * spread + 1));
      weight.values.push_back(static_cast<float>(centre + static_cast<double>(step - spread) / 64));
    }
  }
  void norm(const std::string& name, int64_t size) { add(name, {size}, 16, 1); }

 private:
  HfModel& model_;
  std::mt19937_64 random_;
};

// "llama", "mistral", "qwen2" or "qwen3"; further keys are for the caller to set in the config.
inline HfModel hf_rope_model(const std::string& family, const HfModelSizes& s = {}) {
  HfModel m;
  m.config = {{"model_type", family},
              {"vocab_size", s.vocabulary},
              {"hidden_size", s.hidden},
              {"num_hidden_layers", s.layers},
              {"num_attention_heads", s.heads},
              {"num_key_value_heads", s.kv_heads},
              {"head_dim", s.head_dim},
              {"intermediate_size", s.feed_forward},
              {"max_position_embeddings", s.positions},
              {"rms_norm_eps", 1e-5},
              {"rope_theta", 10000.0},
              {"tie_word_embeddings", s.tied},
              {"bos_token_id", nullptr},
              {"eos_token_id", nullptr}};
  if (family == "mistral") m.config["sliding_window"] = nullptr;
  HfWeightMaker make(m, s.seed);
  make.add("model.embed_tokens.weight", {s.vocabulary, s.hidden});
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const std::string p = "model.layers." + std::to_string(layer) + ".";
    const std::pair<const char*, int64_t> projections[] = {{"q", s.heads * s.head_dim},
                                                           {"k", s.kv_heads * s.head_dim},
                                                           {"v", s.kv_heads * s.head_dim}};
    for (const auto& [name, rows] : projections) {
      const std::string module = p + "self_attn." + name + "_proj.";
      make.add(module + "weight", {rows, s.hidden});
      if (family == "qwen2") make.add(module + "bias", {rows});
    }
    if (family == "qwen3")
      for (const char* name : {"q", "k"})
        make.norm(p + "self_attn." + name + "_norm.weight", s.head_dim);
    make.add(p + "self_attn.o_proj.weight", {s.hidden, s.heads * s.head_dim});
    make.add(p + "mlp.gate_proj.weight", {s.feed_forward, s.hidden});
    make.add(p + "mlp.up_proj.weight", {s.feed_forward, s.hidden});
    make.add(p + "mlp.down_proj.weight", {s.hidden, s.feed_forward});
    make.norm(p + "input_layernorm.weight", s.hidden);
    make.norm(p + "post_attention_layernorm.weight", s.hidden);
  }
  make.norm("model.norm.weight", s.hidden);
  if (!s.tied) make.add("lm_head.weight", {s.vocabulary, s.hidden});
  return m;
}

// `head_dim` and `kv_heads` do not count.
inline HfModel hf_gpt2_model(HfModelSizes s = {.positions = 32, .tied = true}) {
  HfModel m;
  m.config = {{"model_type", "gpt2"},      {"vocab_size", s.vocabulary},
              {"n_embd", s.hidden},        {"n_layer", s.layers},
              {"n_head", s.heads},         {"n_positions", s.positions},
              {"n_inner", s.feed_forward}, {"tie_word_embeddings", s.tied},
              {"bos_token_id", nullptr},   {"eos_token_id", nullptr}};
  HfWeightMaker make(m, s.seed);
  make.add("transformer.wte.weight", {s.vocabulary, s.hidden});
  make.add("transformer.wpe.weight", {s.positions, s.hidden});
  const auto norm = [&](const std::string& name) {
    make.norm(name + ".weight", s.hidden);
    make.add(name + ".bias", {s.hidden}, 8);
  };
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const std::string p = "transformer.h." + std::to_string(layer) + ".";
    const auto linear = [&](const std::string& name, int64_t inputs, int64_t outputs) {
      make.add(p + name + ".weight", {inputs, outputs});
      make.add(p + name + ".bias", {outputs});
    };
    norm(p + "ln_1");
    linear("attn.c_attn", s.hidden, 3 * s.hidden);
    linear("attn.c_proj", s.hidden, s.hidden);
    norm(p + "ln_2");
    linear("mlp.c_fc", s.hidden, s.feed_forward);
    linear("mlp.c_proj", s.feed_forward, s.hidden);
  }
  norm("transformer.ln_f");
  if (!s.tied) make.add("lm_head.weight", {s.vocabulary, s.hidden});
  return m;
}

// Any family by name.
inline HfModel hf_model(const std::string& family, const HfModelSizes& sizes = {}) {
  return family == "gpt2" ? hf_gpt2_model(sizes) : hf_rope_model(family, sizes);
}

// A model whose next token depends on the last one alone: it writes `chain` one after the other.
// The tokens of the chain differ from each other.
inline HfModel hf_chain_model(const std::vector<int32_t>& chain, int64_t vocabulary) {
  HfModel m = hf_rope_model("llama", {.vocabulary = vocabulary,
                                      .hidden = vocabulary + vocabulary % 2,
                                      .layers = 1,
                                      .heads = 1,
                                      .feed_forward = 8});
  const auto width = static_cast<size_t>(vocabulary + vocabulary % 2);
  for (auto& [name, weight] : m.weights)
    std::fill(weight.values.begin(), weight.values.end(), name.ends_with("norm.weight") ? 1.0F : 0);
  for (size_t id = 0; id < static_cast<size_t>(vocabulary); ++id)
    m.weights["model.embed_tokens.weight"].values[id * width + id] = 1;
  for (size_t i = 0; i + 1 < chain.size(); ++i)
    m.weights["lm_head.weight"]
        .values[static_cast<size_t>(chain[i + 1]) * width + static_cast<size_t>(chain[i])] = 1;
  return m;
}

namespace detail {

// One value in a dtype of files: the weights have few bits, so that cutting them is exact.
inline void append_value(std::string& out, float value, const std::string& dtype) {
  const auto put = [&](const auto& raw) {
    out.append(reinterpret_cast<const char*>(&raw), sizeof(raw));
  };
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if (dtype == "F32") return put(value);
  if (dtype == "F64") return put(static_cast<double>(value));
  if (dtype == "BF16") return put(static_cast<uint16_t>(bits >> 16));
  const uint32_t exponent = (bits >> 23) & 0xFF;
  const uint32_t half = value == 0 ? 0 : ((exponent - 112) << 10) | ((bits >> 13) & 0x3FF);
  put(static_cast<uint16_t>(half | (bits >> 16 & 0x8000)));
}

}  // namespace detail

// A safetensors file; `dtype` is F32, F64, BF16 or F16.
inline void write_safetensors(const std::filesystem::path& file,
                              const std::map<std::string, HfWeight>& weights,
                              const std::string& dtype = "F32") {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, weight] : weights) {
    const size_t begin = data.size();
    for (const float value : weight.values) detail::append_value(data, value, dtype);
    header[name] = {
        {"dtype", dtype}, {"shape", weight.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const auto length = static_cast<uint64_t>(text.size());
  write_text_atomically(
      file, std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data);
}

struct HfFolderOptions {
  std::string dtype = "F32";
  int shards = 1;
  std::map<std::string, std::string> files = {};  // beside the model, by name
};

// config.json, the weights in one file or in shards with an index, and the further files.
inline void write_hf_folder(const std::filesystem::path& folder, const HfModel& model,
                            const HfFolderOptions& options = {}) {
  make_folders(folder);
  write_text_atomically(folder / "config.json", model.config.dump(1));
  for (const auto& [name, text] : options.files) write_text_atomically(folder / name, text);
  if (options.shards == 1)
    return write_safetensors(folder / "model.safetensors", model.weights, options.dtype);
  std::vector<std::map<std::string, HfWeight>> parts(static_cast<size_t>(options.shards));
  Json index = {{"metadata", {{"total_size", 0}}}, {"weight_map", Json::object()}};
  size_t next = 0;
  const auto shard_name = [&](size_t i) {
    char name[64];
    std::snprintf(name, sizeof(name), "model-%05zu-of-%05d.safetensors", i + 1, options.shards);
    return std::string(name);
  };
  for (const auto& [name, weight] : model.weights) {
    const size_t part = next++ % parts.size();
    parts[part].emplace(name, weight);
    index["weight_map"][name] = shard_name(part);
  }
  for (size_t i = 0; i < parts.size(); ++i)
    write_safetensors(folder / shard_name(i), parts[i], options.dtype);
  write_text_atomically(folder / "model.safetensors.index.json", index.dump(1));
}

}  // namespace rankine::test
