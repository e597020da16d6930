#include <cmath>

#include "model/block.h"
#include "model/layer_parameters.h"

namespace rankine {
namespace {

ParamSpec vector_of(std::string name, int64_t size, Init init) {
  return {std::move(name), Shape{size}, size, false, false, init, 0};
}

ParamSpec matrix_of(std::string name, int64_t rows, int64_t columns, double std) {
  return {std::move(name), Shape{rows, columns},   rows, false, true,
          Init::normal,    static_cast<float>(std)};
}

void add_norm(std::vector<ParamSpec>& out, const std::string& name, const ModelConfig& config) {
  out.push_back(vector_of(name + ".weight", config.hidden, Init::ones));
  if (config.norm == NormKind::layer)
    out.push_back(vector_of(name + ".bias", config.hidden, Init::zeros));
}

struct Part {
  const char* name;
  int64_t rows;
};

// One product's matrices, joined, then its biases, joined.
struct Linear {
  std::string prefix;
  std::vector<Part> parts;
  int64_t inputs;
  double std;
  bool bias;
};

void add_linear(std::vector<ParamSpec>& out, const Linear& linear) {
  for (const bool bias : {false, true}) {
    if (bias && !linear.bias) continue;
    bool first = true;
    for (const Part& part : linear.parts) {
      const std::string name = linear.prefix + part.name + (bias ? ".bias" : ".weight");
      out.push_back(bias ? vector_of(name, part.rows, Init::zeros)
                         : matrix_of(name, part.rows, linear.inputs, linear.std));
      out.back().joined = !first;
      first = false;
    }
  }
}

}  // namespace

int64_t padded_vocabulary(int64_t vocabulary) {
  return (vocabulary + 63) / 64 * 64;
}

std::vector<ParamSpec> embedding_parameters(const ModelConfig& config) {
  std::vector<ParamSpec> out{matrix_of("embedding.tokens.weight", config.vocabulary, config.hidden,
                                       config.initializer_range)};
  out[0].stored_rows = padded_vocabulary(config.vocabulary);
  if (config.position == PositionKind::learned)
    out.push_back(matrix_of("embedding.positions.weight", config.positions, config.hidden,
                            config.initializer_range));
  return out;
}

std::vector<ParamSpec> layer_parameters(const ModelConfig& c, int64_t layer) {
  const std::string name = fmt::format("layers.{}.", layer);
  // The two products that write to the residual stream start smaller, by 1 / sqrt(2 L), as in
  // GPT-2.
  const double std = c.initializer_range;
  const double residual_std = std / std::sqrt(2.0 * static_cast<double>(c.layers));
  const int64_t f = c.feed_forward;
  std::vector<ParamSpec> out;
  add_linear(out, {name + "attention.",
                   {{"q", c.query_width()}, {"k", c.kv_width()}, {"v", c.kv_width()}},
                   c.hidden,
                   std,
                   c.qkv_bias});
  add_linear(out,
             {name + "attention.", {{"out", c.hidden}}, c.query_width(), residual_std, c.out_bias});
  const std::vector<Part> up = c.activation == ActivationKind::swiglu
                                   ? std::vector<Part>{{"gate", f}, {"up", f}}
                                   : std::vector<Part>{{"up", f}};
  add_linear(out, {name + "mlp.", up, c.hidden, std, c.mlp_bias});
  add_linear(out, {name + "mlp.", {{"down", c.hidden}}, f, residual_std, c.mlp_bias});
  add_norm(out, name + "attention_norm", c);
  add_norm(out, name + "mlp_norm", c);
  if (c.qk_norm) {
    out.push_back(vector_of(name + "attention.q_norm.weight", c.head_dim, Init::ones));
    out.push_back(vector_of(name + "attention.k_norm.weight", c.head_dim, Init::ones));
  }
  return out;
}

std::vector<ParamSpec> head_parameters(const ModelConfig& config) {
  std::vector<ParamSpec> out;
  if (!config.tied) {
    out.push_back(
        matrix_of("head.weight", config.vocabulary, config.hidden, config.initializer_range));
    out.back().stored_rows = padded_vocabulary(config.vocabulary);
  }
  add_norm(out, "head.norm", config);
  return out;
}

std::vector<ParamSpec> model_parameters(const ModelConfig& config) {
  std::vector<ParamSpec> out = embedding_parameters(config);
  for (int64_t layer = 0; layer < config.layers; ++layer)
    for (ParamSpec& spec : layer_parameters(config, layer)) out.push_back(std::move(spec));
  for (ParamSpec& spec : head_parameters(config)) out.push_back(std::move(spec));
  return out;
}

int64_t parameter_count(const ModelConfig& config) {
  int64_t count = 0;
  for (const ParamSpec& spec : model_parameters(config)) count += spec.shape.elements();
  return count;
}

std::vector<ParamSpec> joined_groups(std::span<const ParamSpec> parameters) {
  std::vector<ParamSpec> groups;
  for (const ParamSpec& spec : parameters) {
    if (!spec.joined) {
      groups.push_back(spec);
      continue;
    }
    ParamSpec& group = groups.back();
    group.shape = group.shape.with(0, group.shape[0] + spec.shape[0]);
    group.stored_rows += spec.stored_rows;
  }
  return groups;
}

double training_flops_per_token(const ModelConfig& c, int64_t tokens) {
  int64_t looked_up = 0;
  for (const ParamSpec& spec : embedding_parameters(c))
    if (!(c.tied && spec.name == "embedding.tokens.weight")) looked_up += spec.shape.elements();
  const auto n = static_cast<double>(parameter_count(c) - looked_up);
  return 6 * n + 6 * static_cast<double>(c.layers * tokens * c.query_width());
}

}  // namespace rankine
