#include <cmath>

#include "model/block_parameters.h"
#include "model/model.h"

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

// The parameters of a block in order. Whatever is added answers with its group's number.
class ParameterList {
 public:
  explicit ParameterList(const TensorSplit& split) : split_(split) {}

  int add(ParamSpec spec) {
    if (!spec.joined) ++groups_;
    specs_.push_back(std::move(spec));
    return groups_ - 1;
  }
  int add_whole(ParamSpec spec, GradientSum sum) {
    return add(whole_on_all(std::move(spec), split_, sum));
  }
  NormGroups add_norm(const std::string& name, const ModelConfig& config) {
    // With rows of its own a rank's gradient of a norm is a part of the sum.
    const GradientSum sum = split_.sequence ? GradientSum::tensor : GradientSum::none;
    NormGroups norm;
    norm.weight = add_whole(vector_of(name + ".weight", config.hidden, Init::ones), sum);
    if (config.norm == NormKind::layer)
      norm.bias = add_whole(vector_of(name + ".bias", config.hidden, Init::zeros), sum);
    return norm;
  }
  // A product whose outputs are split: rows of the matrix, and of its bias.
  LinearGroups add_split_outputs(const Linear& linear) {
    return {add_rows(linear, false), linear.bias ? add_rows(linear, true) : -1};
  }
  // A product whose inputs are split: columns of the matrix; its bias is on every rank.
  LinearGroups add_split_inputs(const Linear& linear) {
    const Part& part = linear.parts.front();
    const std::string name = linear.prefix + part.name;
    ParamSpec matrix = matrix_of(name + ".weight", part.rows, linear.inputs, linear.std);
    restrict(matrix, 1, part.held);
    LinearGroups groups;
    groups.weight = add(std::move(matrix));
    if (linear.bias)
      groups.bias = add_whole(vector_of(name + ".bias", part.rows, Init::zeros), GradientSum::none);
    return groups;
  }
  std::vector<ParamSpec> take() { return std::move(specs_); }
  int groups() const { return groups_; }

 private:
  int add_rows(const Linear& linear, bool bias) {
    int group = -1;
    for (const Part& part : linear.parts) {
      const std::string name = linear.prefix + part.name + (bias ? ".bias" : ".weight");
      ParamSpec spec = bias ? vector_of(name, part.rows, Init::zeros)
                            : matrix_of(name, part.rows, linear.inputs, linear.std);
      restrict(spec, 0, part.held);
      if (part.replicas > 1) {
        spec.sum = GradientSum::replicas;
        spec.counted = split_.rank % part.replicas == 0;
      }
      spec.joined = group >= 0;
      group = add(std::move(spec));
    }
    return group;
  }

  const TensorSplit& split_;
  std::vector<ParamSpec> specs_;
  int groups_ = 0;
};

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

EmbeddingParameters embedding_parameters(const ModelConfig& config, const TensorSplit& split) {
  ParameterList list(split);
  EmbeddingParameters p;
  p.tokens = list.add(vocabulary_matrix("embedding.tokens.weight", config, split));
  if (config.position == PositionKind::learned)
    p.positions = list.add_whole(matrix_of("embedding.positions.weight", config.positions,
                                           config.hidden, config.initializer_range),
                                 GradientSum::none);
  p.specs = list.take();
  return p;
}

LayerParameters layer_parameters(const ModelConfig& c, int64_t layer, const TensorSplit& split) {
  const std::string attention = fmt::format("layers.{}.attention.", layer);
  const std::string mlp = fmt::format("layers.{}.mlp.", layer);
  // The two products that write to the residual stream start smaller, by 1 / sqrt(2 L), as in
  // GPT-2.
  const double std = c.initializer_range;
  const double residual_std = std / std::sqrt(2.0 * static_cast<double>(c.layers));
  const Range queries = scaled(split.heads(c), c.head_dim), inner = split.share(c.feed_forward);
  const Range keys = scaled(split.kv_heads(c), c.head_dim);
  const int replicas = split.kv_replicas(c);
  std::vector<Part> up{{"up", c.feed_forward, inner}};
  if (c.activation == ActivationKind::swiglu)
    up.insert(up.begin(), {"gate", c.feed_forward, inner});
  ParameterList list(split);
  LayerParameters p;
  p.attention.qkv = list.add_split_outputs({attention,
                                            {{"q", c.query_width(), queries},
                                             {"k", c.kv_width(), keys, replicas},
                                             {"v", c.kv_width(), keys, replicas}},
                                            c.hidden,
                                            std,
                                            c.qkv_bias});
  p.attention.out = list.add_split_inputs(
      {attention, {{"out", c.hidden, queries}}, c.query_width(), residual_std, c.out_bias});
  p.feed_forward.up = list.add_split_outputs({mlp, up, c.hidden, std, c.mlp_bias});
  p.feed_forward.down = list.add_split_inputs(
      {mlp, {{"down", c.hidden, inner}}, c.feed_forward, residual_std, c.mlp_bias});
  p.attention.norm = list.add_norm(fmt::format("layers.{}.attention_norm", layer), c);
  p.feed_forward.norm = list.add_norm(fmt::format("layers.{}.mlp_norm", layer), c);
  if (c.qk_norm) {
    const auto norm = [&](const char* name) {
      return list.add_whole(vector_of(attention + name, c.head_dim, Init::ones),
                            GradientSum::tensor);
    };
    p.attention.q_norm = norm("q_norm.weight");
    p.attention.k_norm = norm("k_norm.weight");
  }
  p.specs = list.take();
  return p;
}

HeadParameters head_parameters(const ModelConfig& config, const TensorSplit& split, bool copy) {
  ParameterList list(split);
  HeadParameters p;
  if (!config.tied) p.matrix = list.add(vocabulary_matrix("head.weight", config, split));
  if (copy) {
    ParamSpec tokens = vocabulary_matrix("embedding.tokens.weight", config, split);
    tokens.counted = false;
    p.matrix = list.add(std::move(tokens));
  }
  p.norm = list.add_norm("head.norm", config);
  p.tied = p.matrix < 0;
  if (p.tied) p.matrix = list.groups();
  p.specs = list.take();
  return p;
}

std::vector<ParamSpec> model_parameters(const ModelConfig& config) {
  std::vector<ParamSpec> out = embedding_parameters(config, {}).specs;
  const auto append = [&](std::vector<ParamSpec> specs) {
    for (ParamSpec& spec : specs) out.push_back(std::move(spec));
  };
  for (int64_t layer = 0; layer < config.layers; ++layer)
    append(layer_parameters(config, layer, {}).specs);
  append(head_parameters(config, {}, false).specs);
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
  for (const ParamSpec& spec : embedding_parameters(c, {}).specs)
    if (!(c.tied && spec.name == "embedding.tokens.weight")) looked_up += spec.shape.elements();
  const auto n = static_cast<double>(parameter_count(c) - looked_up);
  return 6 * n + 6 * static_cast<double>(c.layers * tokens * c.query_width());
}

}  // namespace rankine
