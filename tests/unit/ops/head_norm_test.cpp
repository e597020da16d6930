#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

constexpr float epsilon = 1e-6f;

const AttentionShape shapes[] = {
    {.batch = 2, .tokens = 3, .heads = 4, .kv_heads = 2, .head_dim = 16},
    {.batch = 1, .tokens = 150, .heads = 3, .kv_heads = 1, .head_dim = 10},
    {.batch = 1, .tokens = 5, .heads = 2, .kv_heads = 2, .head_dim = 128}};

// The weight of a column of qkv, or -1 for v.
int64_t weight_index(const AttentionShape& s, int64_t column) {
  const int64_t head = column / s.head_dim, within = column % s.head_dim;
  if (head >= s.heads + s.kv_heads) return -1;
  return head < s.heads ? within : s.head_dim + within;
}

// weights = q_weight then k_weight.
Values reference(const AttentionShape& s, const Values& qkv, const Values& weights) {
  Values out = qkv;
  for (size_t start = 0; start < qkv.size(); start += static_cast<size_t>(s.head_dim)) {
    double squares = 0;
    for (int64_t d = 0; d < s.head_dim; ++d) {
      const double x = qkv[start + static_cast<size_t>(d)];
      squares += x * x;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(s.head_dim) + epsilon);
    for (int64_t d = 0; d < s.head_dim; ++d) {
      const size_t at = start + static_cast<size_t>(d);
      const int64_t w = weight_index(s, static_cast<int64_t>(at) % s.qkv_width());
      if (w >= 0) out[at] = qkv[at] * scale * weights[static_cast<size_t>(w)];
    }
  }
  return out;
}

struct HeadNormTensors {
  HeadNormTensors(const AttentionShape& s, DType dtype)
      : shape(s),
        qkv(random_tensor(dtype, {s.rows(), s.qkv_width()}, 1)),
        q_weight(random_tensor(dtype, {s.head_dim}, 2)),
        k_weight(random_tensor(dtype, {s.head_dim}, 3)),
        out(dtype, {s.rows(), s.qkv_width()}),
        rstd(DType::f32, {s.rows(), s.heads + s.kv_heads}) {}
  Values weights() const {
    Values both = q_weight.values();
    for (const double w : k_weight.values()) both.push_back(w);
    return both;
  }
  AttentionShape shape;
  Owned qkv, q_weight, k_weight, out, rstd;
};

TEST(HeadNorm, AgreesWithF64) {
  on_all([](Ops& ops, DType dtype) {
    for (const AttentionShape& shape : shapes) {
      const HeadNormTensors t(shape, dtype);
      ops.head_norm(shape, epsilon, t.qkv, t.q_weight, t.k_weight, t.out, t.rstd);
      expect_near(t.out.values(), reference(shape, t.qkv.values(), t.weights()), {dtype, 32, 2});
      ops.head_norm(shape, epsilon, t.qkv, t.q_weight, t.k_weight, t.qkv, t.rstd);
      EXPECT_TRUE(t.qkv.bits() == t.out.bits()) << "in place";
    }
  });
}

TEST(HeadNorm, GradientAgreesWithDifferences) {
  on_all([](Ops& ops, DType dtype) {
    for (const AttentionShape& shape : shapes) {
      const HeadNormTensors t(shape, dtype);
      const Workspace space(ops, ops.norm_workspace(shape.rows(), shape.head_dim));
      const Owned dqkv = random_tensor(dtype, t.qkv.tensor().shape, 4);
      const Owned dq(DType::f32, {shape.head_dim}), dk(DType::f32, {shape.head_dim});
      const Values dout = dqkv.values(), qkv = t.qkv.values(), weights = t.weights();
      ops.head_norm(shape, epsilon, t.qkv, t.q_weight, t.k_weight, t.out, t.rstd);
      ops.head_norm_grad(shape, t.qkv, t.rstd, t.q_weight, t.k_weight, dqkv, dq, dk, false);
      expect_gradient(dqkv.values(), qkv,
                      [&](const Values& x) { return dot(reference(shape, x, weights), dout); },
                      {dtype, 64, 4});
      Values dweights = dq.values();
      for (const double w : dk.values()) dweights.push_back(w);
      expect_gradient(dweights, weights,
                      [&](const Values& w) { return dot(reference(shape, qkv, w), dout); },
                      {.steps = 64, .magnitude = 30});
      const Owned again(dtype, t.qkv.tensor().shape, dout);
      ops.head_norm_grad(shape, t.qkv, t.rstd, t.q_weight, t.k_weight, again, dq, dk, true);
      Values twice = dq.values();
      for (const double w : dk.values()) twice.push_back(w);
      expect_near(twice, plus(dweights, dweights), {.magnitude = 30});
    }
  });
}

TEST(HeadNorm, DoesNotDependOnThreads) {
  same_for_any_threads([](Ops& ops, DType dtype) {
    const HeadNormTensors t(shapes[1], dtype);
    const Workspace space(ops, ops.norm_workspace(t.shape.rows(), t.shape.head_dim));
    const Owned dqkv = random_tensor(dtype, t.qkv.tensor().shape, 4);
    const Owned dq(DType::f32, {t.shape.head_dim}), dk(DType::f32, {t.shape.head_dim});
    ops.head_norm(t.shape, epsilon, t.qkv, t.q_weight, t.k_weight, t.out, t.rstd);
    ops.head_norm_grad(t.shape, t.qkv, t.rstd, t.q_weight, t.k_weight, dqkv, dq, dk, false);
    return t.out.bits() + dqkv.bits() + dq.bits() + dk.bits();
  });
}

}  // namespace
}  // namespace rankine::test
