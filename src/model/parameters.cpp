#include <cmath>

#include "model/block.h"
#include "model/layer_parameters.h"

namespace rankine {
namespace {

using Range = TensorSplit::Range;

ParamSpec vector_of(std::string name, int64_t size, Init init) {
  ParamSpec spec;
  spec.name = std::move(name);
  spec.shape = Shape{size};
  spec.box = whole(spec.shape);
  spec.stored_rows = size;
  spec.init = init;
  return spec;
}

ParamSpec matrix_of(std::string name, int64_t rows, int64_t columns, double std) {
  ParamSpec spec = vector_of(std::move(name), rows, Init::normal);
  spec.shape = Shape{rows, columns};
  spec.box = whole(spec.shape);
  spec.decay = true;
  spec.std = static_cast<float>(std);
  return spec;
}

void restrict(ParamSpec& spec, int dim, Range range) {
  spec.box.begin = spec.box.begin.with(dim, range.begin);
  spec.box.end = spec.box.end.with(dim, range.end);
  if (dim == 0) spec.stored_rows = range.count();
}

// What every rank of the tensor axis holds whole.
ParamSpec whole_on_all(ParamSpec spec, const TensorSplit& split, GradientSum sum) {
  spec.counted = split.rank == 0;
  spec.sum = split.ranks > 1 ? sum : GradientSum::none;
  return spec;
}

void add_norm(std::vector<ParamSpec>& out, const std::string& name, const ModelConfig& config,
              const TensorSplit& split) {
  // With rows of its own a rank's gradient of a norm is a part of the sum.
  const GradientSum sum = split.sequence ? GradientSum::tensor : GradientSum::none;
  out.push_back(whole_on_all(vector_of(name + ".weight", config.hidden, Init::ones), split, sum));
  if (config.norm == NormKind::layer)
    out.push_back(whole_on_all(vector_of(name + ".bias", config.hidden, Init::zeros), split, sum));
}

struct Part {
  const char* name;
  int64_t rows;      // of all ranks
  Range held;        // of them, this rank's
  int replicas = 1;  // neighbouring ranks that hold the same
};

// One product's matrices, joined, then its biases, joined.
struct Linear {
  std::string prefix;
  std::vector<Part> parts;
  int64_t inputs;
  double std;
  bool bias;
};

// A product whose outputs are split: rows of the matrix, and of its bias.
void add_split_outputs(std::vector<ParamSpec>& out, const Linear& linear,
                       const TensorSplit& split) {
  for (const bool bias : {false, true}) {
    if (bias && !linear.bias) continue;
    bool first = true;
    for (const Part& part : linear.parts) {
      const std::string name = linear.prefix + part.name + (bias ? ".bias" : ".weight");
      ParamSpec spec = bias ? vector_of(name, part.rows, Init::zeros)
                            : matrix_of(name, part.rows, linear.inputs, linear.std);
      restrict(spec, 0, part.held);
      if (part.replicas > 1) {
        spec.sum = GradientSum::replicas;
        spec.counted = split.rank % part.replicas == 0;
      }
      spec.joined = !first;
      first = false;
      out.push_back(std::move(spec));
    }
  }
}

// A product whose inputs are split: columns of the matrix; its bias is on every rank.
void add_split_inputs(std::vector<ParamSpec>& out, const Linear& linear, Range held,
                      const TensorSplit& split) {
  const Part& part = linear.parts.front();
  const std::string name = linear.prefix + part.name;
  out.push_back(matrix_of(name + ".weight", part.rows, linear.inputs, linear.std));
  restrict(out.back(), 1, held);
  if (linear.bias)
    out.push_back(
        whole_on_all(vector_of(name + ".bias", part.rows, Init::zeros), split, GradientSum::none));
}

ParamSpec vocabulary_matrix(const char* name, const ModelConfig& config, const TensorSplit& split) {
  ParamSpec spec = matrix_of(name, config.vocabulary, config.hidden, config.initializer_range);
  restrict(spec, 0, split.vocabulary(config));
  spec.stored_rows = split.stored_vocabulary(config);
  return spec;
}

Range scaled(Range range, int64_t factor) {
  return {range.begin * factor, range.end * factor};
}

}  // namespace

std::vector<ParamSpec> embedding_parameters(const ModelConfig& config, const TensorSplit& split) {
  std::vector<ParamSpec> out{vocabulary_matrix("embedding.tokens.weight", config, split)};
  if (config.position == PositionKind::learned)
    out.push_back(whole_on_all(matrix_of("embedding.positions.weight", config.positions,
                                         config.hidden, config.initializer_range),
                               split, GradientSum::none));
  return out;
}

std::vector<ParamSpec> layer_parameters(const ModelConfig& c, int64_t layer,
                                        const TensorSplit& split) {
  const std::string name = fmt::format("layers.{}.", layer);
  // The two products that write to the residual stream start smaller, by 1 / sqrt(2 L), as in
  // GPT-2.
  const double std = c.initializer_range;
  const double residual_std = std / std::sqrt(2.0 * static_cast<double>(c.layers));
  const Range queries = scaled(split.heads(c), c.head_dim), inner = split.share(c.feed_forward);
  const Range keys = scaled(split.kv_heads(c), c.head_dim);
  const int replicas = split.kv_replicas(c);
  std::vector<ParamSpec> out;
  add_split_outputs(out,
                    {name + "attention.",
                     {{"q", c.query_width(), queries},
                      {"k", c.kv_width(), keys, replicas},
                      {"v", c.kv_width(), keys, replicas}},
                     c.hidden,
                     std,
                     c.qkv_bias},
                    split);
  add_split_inputs(
      out,
      {name + "attention.", {{"out", c.hidden, {}}}, c.query_width(), residual_std, c.out_bias},
      queries, split);
  std::vector<Part> up{{"up", c.feed_forward, inner}};
  if (c.activation == ActivationKind::swiglu)
    up.insert(up.begin(), {"gate", c.feed_forward, inner});
  add_split_outputs(out, {name + "mlp.", up, c.hidden, std, c.mlp_bias}, split);
  add_split_inputs(
      out, {name + "mlp.", {{"down", c.hidden, {}}}, c.feed_forward, residual_std, c.mlp_bias},
      inner, split);
  add_norm(out, name + "attention_norm", c, split);
  add_norm(out, name + "mlp_norm", c, split);
  if (c.qk_norm)
    for (const char* norm : {"attention.q_norm.weight", "attention.k_norm.weight"})
      out.push_back(
          whole_on_all(vector_of(name + norm, c.head_dim, Init::ones), split, GradientSum::tensor));
  return out;
}

std::vector<ParamSpec> head_parameters(const ModelConfig& config, const TensorSplit& split,
                                       bool copy) {
  std::vector<ParamSpec> out;
  if (!config.tied) out.push_back(vocabulary_matrix("head.weight", config, split));
  if (copy) {
    out.push_back(vocabulary_matrix("embedding.tokens.weight", config, split));
    out.back().counted = false;
  }
  add_norm(out, "head.norm", config, split);
  return out;
}

std::vector<ParamSpec> model_parameters(const ModelConfig& config) {
  std::vector<ParamSpec> out = embedding_parameters(config, {});
  for (int64_t layer = 0; layer < config.layers; ++layer)
    for (ParamSpec& spec : layer_parameters(config, layer, {})) out.push_back(std::move(spec));
  for (ParamSpec& spec : head_parameters(config, {}, false)) out.push_back(std::move(spec));
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
  for (const ParamSpec& spec : embedding_parameters(c, {}))
    if (!(c.tied && spec.name == "embedding.tokens.weight")) looked_up += spec.shape.elements();
  const auto n = static_cast<double>(parameter_count(c) - looked_up);
  return 6 * n + 6 * static_cast<double>(c.layers * tokens * c.query_width());
}

}  // namespace rankine
