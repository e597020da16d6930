#pragma once
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "support/hf_folder.h"

// What the models compute, in double precision and plain loops, from the tensors of a folder by
// their official names. Rotary embedding without scaling.
namespace rankine::test {

class ReferenceModel {
 public:
  explicit ReferenceModel(const HfModel& model) : model_(model), c_(model.config) {
    gpt2_ = c_["model_type"] == "gpt2";
    hidden_ = size(gpt2_ ? "n_embd" : "hidden_size");
    layers_ = size(gpt2_ ? "n_layer" : "num_hidden_layers");
    heads_ = size(gpt2_ ? "n_head" : "num_attention_heads");
    kv_heads_ = gpt2_ ? heads_ : size("num_key_value_heads");
    head_dim_ = gpt2_ ? hidden_ / heads_ : size("head_dim");
    if (c_.contains("sliding_window") && c_["sliding_window"].is_number() &&
        (c_["model_type"] == "mistral" || c_.value("use_sliding_window", false)))
      window_ = size("sliding_window");
  }

  // One row [V] for each token.
  std::vector<std::vector<double>> logits(std::span<const int32_t> ids) const {
    std::vector<Row> x(ids.size());
    for (size_t t = 0; t < ids.size(); ++t) {
      x[t] = row_of(gpt2_ ? "transformer.wte.weight" : "model.embed_tokens.weight", ids[t]);
      if (gpt2_) add_to(x[t], row_of("transformer.wpe.weight", static_cast<int64_t>(t)));
    }
    for (size_t layer = 0; layer < layers_; ++layer) run_layer(layer, x);
    const bool tied = c_.value("tie_word_embeddings", gpt2_);
    const std::string head = !tied ? "lm_head" : gpt2_ ? "transformer.wte" : "model.embed_tokens";
    std::vector<Row> out;
    for (const Row& row : x)
      out.push_back(product(head, norm(gpt2_ ? "transformer.ln_f" : "model.norm", row), false));
    return out;
  }

  // -log p of each of ids[1], ids[2], ...
  std::vector<double> losses(std::span<const int32_t> ids) const {
    const auto rows = logits(ids);
    std::vector<double> out;
    for (size_t t = 0; t + 1 < ids.size(); ++t) {
      double sum = 0;
      for (const double z : rows[t]) sum += std::exp(z);
      out.push_back(std::log(sum) - rows[t][static_cast<size_t>(ids[t + 1])]);
    }
    return out;
  }
  double loss_sum(std::span<const int32_t> ids) const {
    const std::vector<double> all = losses(ids);
    return std::accumulate(all.begin(), all.end(), 0.0);
  }

 private:
  using Row = std::vector<double>;

  size_t size(const char* key) const { return c_[key].get<size_t>(); }
  static void add_to(Row& x, const Row& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  Row row_of(const std::string& name, int64_t row) const {
    const std::vector<float>& values = model_.weights.at(name).values;
    const auto begin = values.begin() + row * static_cast<int64_t>(hidden_);
    return {begin, begin + static_cast<int64_t>(hidden_)};
  }
  // `transposed`: the file has [inputs, outputs].
  Row product(const std::string& module, const Row& x, bool transposed) const {
    const HfWeight& w = model_.weights.at(module + ".weight");
    const auto outputs = static_cast<size_t>(w.shape[transposed ? 1 : 0]);
    Row y(outputs);
    for (size_t o = 0; o < outputs; ++o)
      for (size_t i = 0; i < x.size(); ++i)
        y[o] +=
            static_cast<double>(w.values[transposed ? i * outputs + o : o * x.size() + i]) * x[i];
    const auto bias = model_.weights.find(module + ".bias");
    if (bias != model_.weights.end())
      for (size_t o = 0; o < outputs; ++o) y[o] += static_cast<double>(bias->second.values[o]);
    return y;
  }
  Row norm(const std::string& module, const Row& x) const {
    const HfWeight& w = model_.weights.at(module + ".weight");
    const auto n = static_cast<double>(x.size());
    const double mean = gpt2_ ? std::accumulate(x.begin(), x.end(), 0.0) / n : 0;
    double squares = 0;
    for (const double v : x) squares += (v - mean) * (v - mean);
    const double scale = 1 / std::sqrt(squares / n + c_.value("rms_norm_eps", 1e-5));
    Row y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      y[i] = (x[i] - mean) * scale * static_cast<double>(w.values[i]);
      if (gpt2_) y[i] += static_cast<double>(model_.weights.at(module + ".bias").values[i]);
    }
    return y;
  }
  Row part(const Row& x, size_t head) const {
    const auto begin = x.begin() + static_cast<int64_t>(head * head_dim_);
    return {begin, begin + static_cast<int64_t>(head_dim_)};
  }
  void rotate(Row& x, size_t position) const {
    const size_t half = head_dim_ / 2;
    for (size_t i = 0; i < half; ++i) {
      const double frequency =
          std::pow(c_["rope_theta"].get<double>(),
                   -2.0 * static_cast<double>(i) / static_cast<double>(head_dim_));
      const double angle = static_cast<double>(position) * frequency;
      const double a = x[i], b = x[i + half];
      x[i] = a * std::cos(angle) - b * std::sin(angle);
      x[i + half] = b * std::cos(angle) + a * std::sin(angle);
    }
  }

  // Queries, keys and values of a token, one row a head.
  struct Heads {
    std::vector<Row> q, k, v;
  };
  Heads heads_of(const std::string& p, const Row& x, size_t position) const {
    Heads out;
    const Row joined = gpt2_ ? product(p + "attn.c_attn", x, true) : Row();
    const auto take = [&](const char* name, size_t heads, size_t place, std::vector<Row>& into) {
      const Row all = gpt2_ ? joined : product(p + "self_attn." + name + "_proj", x, false);
      for (size_t h = 0; h < heads; ++h) into.push_back(part(all, h + (gpt2_ ? place * heads : 0)));
    };
    take("q", heads_, 0, out.q);
    take("k", kv_heads_, 1, out.k);
    take("v", kv_heads_, 2, out.v);
    for (auto* rows : {&out.q, &out.k})
      for (Row& row : *rows) {
        if (c_["model_type"] == "qwen3")
          row = norm(p + "self_attn." + (rows == &out.q ? "q" : "k") + "_norm", row);
        if (!gpt2_) rotate(row, position);
      }
    return out;
  }

  Row attention(const std::vector<Heads>& tokens, size_t t) const {
    Row out;
    const size_t first = window_ > 0 && t + 1 > window_ ? t + 1 - window_ : 0;
    for (size_t h = 0; h < heads_; ++h) {
      const size_t group = h / (heads_ / kv_heads_);
      Row weights, sum(head_dim_);
      double total = 0;
      for (size_t u = first; u <= t; ++u) {
        const Row &q = tokens[t].q[h], &k = tokens[u].k[group];
        const double score = std::inner_product(q.begin(), q.end(), k.begin(), 0.0) /
                             std::sqrt(static_cast<double>(head_dim_));
        weights.push_back(std::exp(score));
        total += weights.back();
      }
      for (size_t u = first; u <= t; ++u)
        for (size_t i = 0; i < head_dim_; ++i)
          sum[i] += weights[u - first] / total * tokens[u].v[group][i];
      out.insert(out.end(), sum.begin(), sum.end());
    }
    return out;
  }

  Row feed_forward(const std::string& p, const Row& x) const {
    if (gpt2_) {
      Row inner = product(p + "mlp.c_fc", x, true);
      for (double& v : inner)
        v = 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
      return product(p + "mlp.c_proj", inner, true);
    }
    Row gate = product(p + "mlp.gate_proj", x, false);
    const Row up = product(p + "mlp.up_proj", x, false);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    return product(p + "mlp.down_proj", gate, false);
  }

  void run_layer(size_t layer, std::vector<Row>& x) const {
    const std::string p =
        (gpt2_ ? "transformer.h." : "model.layers.") + std::to_string(layer) + ".";
    std::vector<Heads> tokens;
    for (size_t t = 0; t < x.size(); ++t)
      tokens.push_back(heads_of(p, norm(p + (gpt2_ ? "ln_1" : "input_layernorm"), x[t]), t));
    for (size_t t = 0; t < x.size(); ++t)
      add_to(x[t], product(p + (gpt2_ ? "attn.c_proj" : "self_attn.o_proj"), attention(tokens, t),
                           gpt2_));
    for (Row& row : x)
      add_to(row, feed_forward(p, norm(p + (gpt2_ ? "ln_2" : "post_attention_layernorm"), row)));
  }

  const HfModel& model_;
  const Json& c_;
  bool gpt2_ = false;
  size_t hidden_, layers_, heads_, kv_heads_, head_dim_, window_ = 0;
};

}  // namespace rankine::test
