#pragma once
#include <cmath>
#include <vector>

#include "ops/ops.h"

// Attention in f64, written for reading: what the kernels are measured against.
namespace rankine::test {

struct ReferenceAttention {
  AttentionShape shape;
  std::vector<double> qkv;          // [B*T, (H+2K) D]
  std::vector<double> out, lse;     // [B*T, H D], [B, H, T] in log2
  std::vector<double> probability;  // [B, H, T, T]

  size_t column(int64_t b, int64_t t, int64_t column_head) const {
    return static_cast<size_t>((b * shape.tokens + t) * shape.qkv_width() +
                               column_head * shape.head_dim);
  }
  int64_t key_head(int64_t h) const { return shape.heads + h / (shape.heads / shape.kv_heads); }
  int64_t value_head(int64_t h) const { return key_head(h) + shape.kv_heads; }
  size_t out_column(int64_t b, int64_t t, int64_t h) const {
    return static_cast<size_t>(((b * shape.tokens + t) * shape.heads + h) * shape.head_dim);
  }
  size_t pair(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return static_cast<size_t>(((b * shape.heads + h) * shape.tokens + i) * shape.tokens + j);
  }
  bool visible(int64_t b, int64_t i, int64_t j) const {
    const bool same_document =
        shape.first_keys.empty() ||
        j >= static_cast<const int32_t*>(shape.first_keys.data)[b * shape.tokens + i];
    return j <= i && same_document && (shape.window == 0 || j > i - shape.window);
  }
  double dot(const std::vector<double>& a, size_t i, const std::vector<double>& b, size_t j) const {
    double sum = 0;
    for (size_t d = 0; d < static_cast<size_t>(shape.head_dim); ++d) sum += a[i + d] * b[j + d];
    return sum;
  }
  template <class Visit>  // visit(b, h, i)
  void for_each_query(Visit&& visit) const {
    for (int64_t b = 0; b < shape.batch; ++b)
      for (int64_t h = 0; h < shape.heads; ++h)
        for (int64_t i = 0; i < shape.tokens; ++i) visit(b, h, i);
  }
};

inline ReferenceAttention reference_attention(const AttentionShape& shape,
                                              const std::vector<double>& qkv) {
  ReferenceAttention r{shape, qkv, {}, {}, {}};
  const double scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  r.out.resize(static_cast<size_t>(shape.rows() * shape.heads * shape.head_dim));
  r.lse.resize(static_cast<size_t>(shape.rows() * shape.heads));
  r.probability.resize(r.pair(shape.batch - 1, shape.heads, 0, 0));
  r.for_each_query([&](int64_t b, int64_t h, int64_t i) {
    double sum = 0;
    for (int64_t j = 0; j <= i; ++j) {
      if (!r.visible(b, i, j)) continue;
      const double score =
          r.dot(qkv, r.column(b, i, h), qkv, r.column(b, j, r.key_head(h))) * scale;
      r.probability[r.pair(b, h, i, j)] = std::exp(score);
      sum += std::exp(score);
    }
    r.lse[static_cast<size_t>((b * shape.heads + h) * shape.tokens + i)] = std::log2(sum);
    for (int64_t j = 0; j <= i; ++j) {
      const double p = r.probability[r.pair(b, h, i, j)] /= sum;
      for (size_t d = 0; d < static_cast<size_t>(shape.head_dim); ++d)
        r.out[r.out_column(b, i, h) + d] += p * qkv[r.column(b, j, r.value_head(h)) + d];
    }
  });
  return r;
}

// Gradient of sum(dout * out) by qkv.
inline std::vector<double> reference_attention_grad(const ReferenceAttention& r,
                                                    const std::vector<double>& dout) {
  std::vector<double> dqkv(r.qkv.size());
  const double scale = 1 / std::sqrt(static_cast<double>(r.shape.head_dim));
  const auto dim = static_cast<size_t>(r.shape.head_dim);
  r.for_each_query([&](int64_t b, int64_t h, int64_t i) {
    const size_t o = r.out_column(b, i, h), q = r.column(b, i, h);
    const double delta = r.dot(dout, o, r.out, o);
    for (int64_t j = 0; j <= i; ++j) {
      if (!r.visible(b, i, j)) continue;
      const size_t k = r.column(b, j, r.key_head(h)), v = r.column(b, j, r.value_head(h));
      const double p = r.probability[r.pair(b, h, i, j)];
      const double ds = p * (r.dot(dout, o, r.qkv, v) - delta) * scale;
      for (size_t d = 0; d < dim; ++d) {
        dqkv[v + d] += p * dout[o + d];
        dqkv[q + d] += ds * r.qkv[k + d];
        dqkv[k + d] += ds * r.qkv[q + d];
      }
    }
  });
  return dqkv;
}

}  // namespace rankine::test
