#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

struct Sizes {
  int64_t rows, width;
};
const Sizes all_sizes[] = {{1, 16}, {3, 20}, {5, 33}, {130, 77}, {9, 768}, {2, 8192}};
const NormKind kinds[] = {NormKind::layer, NormKind::rms};
constexpr float epsilon = 1e-5f;

Values reference_stats(NormKind kind, Sizes sizes, const Values& x) {
  Values stats;
  for (int64_t r = 0; r < sizes.rows; ++r) {
    const double* row = x.data() + r * sizes.width;
    double mean = 0, squares = 0;
    if (kind == NormKind::layer)
      for (int64_t c = 0; c < sizes.width; ++c) mean += row[c] / static_cast<double>(sizes.width);
    for (int64_t c = 0; c < sizes.width; ++c) squares += (row[c] - mean) * (row[c] - mean);
    if (kind == NormKind::layer) stats.push_back(mean);
    stats.push_back(1 / std::sqrt(squares / static_cast<double>(sizes.width) + epsilon));
  }
  return stats;
}

Values reference_norm(NormKind kind, Sizes sizes, const Values& x, const Values& weight,
                      const Values& bias) {
  const Values stats = reference_stats(kind, sizes, x);
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t row = i / static_cast<size_t>(sizes.width);
    const size_t column = i % static_cast<size_t>(sizes.width);
    const bool layer = kind == NormKind::layer;
    const double mean = layer ? stats[2 * row] : 0, scale = layer ? stats[2 * row + 1] : stats[row];
    y[i] = (x[i] - mean) * scale * weight[column] + (bias.empty() ? 0 : bias[column]);
  }
  return y;
}

Shape stats_shape(NormKind kind, Sizes sizes) {
  return {sizes.rows, kind == NormKind::layer ? 2 : 1};
}

// The tensors of one norm; the bias is empty for rms.
struct NormTensors {
  NormTensors(NormKind kind_of, Sizes sizes_of, DType dtype)
      : kind(kind_of),
        sizes(sizes_of),
        x(random_tensor(dtype, {sizes.rows, sizes.width}, 1, 2)),
        weight(random_tensor(dtype, {sizes.width}, 2)),
        bias(random_tensor(dtype, {sizes.width}, 3)),
        stats(DType::f32, stats_shape(kind, sizes)) {}
  Tensor bias_or_none() const { return kind == NormKind::layer ? bias.tensor() : Tensor{}; }
  Values bias_values() const { return kind == NormKind::layer ? bias.values() : Values{}; }
  Ops::NormInputs inputs(Tensor residual = {}) const {
    return {kind, epsilon, x, residual, weight, bias_or_none()};
  }
  NormKind kind;
  Sizes sizes;
  Owned x, weight, bias, stats;
};

template <class Body>
void on_all_norms(const Body& body) {
  on_all([&](Ops& ops, DType dtype) {
    for (const NormKind kind : kinds)
      for (const Sizes sizes : all_sizes) {
        SCOPED_TRACE(fmt::format("{} norm of [{}, {}]", kind == NormKind::layer ? "layer" : "rms",
                                 sizes.rows, sizes.width));
        body(ops, dtype, NormTensors(kind, sizes, dtype));
        if (testing::Test::HasFatalFailure()) return;
      }
  });
}

TEST(Norm, AgreesWithF64) {
  on_all_norms([](Ops& ops, DType dtype, const NormTensors& t) {
    const Owned y(dtype, t.x.tensor().shape);
    ops.norm(t.inputs(), {}, y, t.stats);
    expect_near(t.stats.values(), reference_stats(t.kind, t.sizes, t.x.values()),
                {.steps = 64, .magnitude = 2});
    const Values expected =
        reference_norm(t.kind, t.sizes, t.x.values(), t.weight.values(), t.bias_values());
    expect_near(y.values(), expected, {dtype, 64, 4});

    const Owned again(dtype, t.x.tensor().shape), without(dtype, t.x.tensor().shape);
    ops.norm_again(t.kind, t.x, t.stats, t.weight, t.bias_or_none(), again);
    EXPECT_TRUE(again.bits() == y.bits()) << "norm_again differs from norm";
    ops.norm(t.inputs(), {}, without, {});
    EXPECT_TRUE(without.bits() == y.bits()) << "the result depends on whether stats are kept";
  });
}

TEST(Norm, NormalizesTheSumWithAResidual) {
  on_all_norms([](Ops& ops, DType dtype, const NormTensors& t) {
    const Shape& shape = t.x.tensor().shape;
    const Owned residual = random_tensor(dtype, shape, 4), y(dtype, shape), sum(dtype, shape);
    ops.norm(t.inputs(residual), sum, y, t.stats);
    expect_near(sum.values(), plus(t.x.values(), residual.values()), {dtype, 1, 4});
    expect_near(y.values(),
                reference_norm(t.kind, t.sizes, sum.values(), t.weight.values(), t.bias_values()),
                {dtype, 64, 4});
    const Owned copy(dtype, shape);
    ops.norm(t.inputs(), copy, y, t.stats);
    EXPECT_TRUE(copy.bits() == t.x.bits()) << "without a residual the sum is the input";
  });
}

TEST(Norm, GradientAgreesWithDifferences) {
  on_all_norms([](Ops& ops, DType dtype, const NormTensors& t) {
    const Shape& shape = t.x.tensor().shape;
    const Workspace space(ops, ops.norm_workspace(t.sizes.rows, t.sizes.width));
    const Owned y(dtype, shape), dy = random_tensor(dtype, shape, 5), dx(dtype, shape);
    const Owned dweight(DType::f32, {t.sizes.width}), dbias(DType::f32, {t.sizes.width});
    const Tensor dbias_or_none = t.kind == NormKind::layer ? dbias.tensor() : Tensor{};
    ops.norm(t.inputs(), {}, y, t.stats);
    ops.norm_grad({t.kind, t.x, t.stats, t.weight, dy, {}}, dx, dweight, dbias_or_none);

    const Values x = t.x.values(), weight = t.weight.values(), bias = t.bias_values();
    const auto loss = [&](const Values& a, const Values& b, const Values& c) {
      return dot(reference_norm(t.kind, t.sizes, a, b, c), dy.values());
    };
    expect_gradient(dx.values(), x, [&](const Values& a) { return loss(a, weight, bias); },
                    {dtype, 128, 4});
    const Tolerance sums{DType::f32, 64, std::sqrt(static_cast<double>(t.sizes.rows)) * 4};
    expect_gradient(
        dweight.values(), weight, [&](const Values& b) { return loss(x, b, bias); }, sums);
    if (t.kind == NormKind::layer)
      expect_gradient(
          dbias.values(), bias, [&](const Values& c) { return loss(x, weight, c); }, sums);
  });
}

TEST(Norm, GradientAddsTheResidualAndAccumulates) {
  on_all_norms([](Ops& ops, DType dtype, const NormTensors& t) {
    const Shape& shape = t.x.tensor().shape;
    const Workspace space(ops, ops.norm_workspace(t.sizes.rows, t.sizes.width));
    const Owned y(dtype, shape), dy = random_tensor(dtype, shape, 5);
    const Owned fresh(dtype, shape), residual = random_tensor(dtype, shape, 6, 4);
    const Owned once(DType::f32, {t.sizes.width}), bias_once(DType::f32, {t.sizes.width});
    const Owned twice(DType::f32, {t.sizes.width}), bias_twice(DType::f32, {t.sizes.width});
    const bool layer = t.kind == NormKind::layer;
    ops.norm(t.inputs(), {}, y, t.stats);
    Ops::NormGrad in{t.kind, t.x, t.stats, t.weight, dy, {}};
    ops.norm_grad(in, fresh, once, layer ? bias_once.tensor() : Tensor{});
    ops.norm_grad(in, fresh, twice, layer ? bias_twice.tensor() : Tensor{});
    const Values expected = plus(fresh.values(), residual.values());
    const Owned apart(dtype, shape);
    in.residual = residual;
    in.accumulate = true;
    ops.norm_grad(in, apart, twice, layer ? bias_twice.tensor() : Tensor{});
    expect_near(twice.values(), plus(once.values(), once.values()), {.magnitude = 8});
    if (layer)
      expect_near(bias_twice.values(), plus(bias_once.values(), bias_once.values()),
                  {.magnitude = 8});
    // `fresh` was rounded to the storage type once more than the joint result.
    expect_near(apart.values(), expected, {dtype, 8 + 4 * rounding(dtype) / 0x1p-24, 4});
    ops.norm_grad(in, residual, twice, layer ? bias_twice.tensor() : Tensor{});
    EXPECT_TRUE(residual.bits() == apart.bits()) << "the residual may be the result itself";
  });
}

TEST(Norm, DoesNotDependOnThreads) {
  same_for_any_threads([](Ops& ops, DType dtype) {
    const NormTensors t(NormKind::layer, {300, 100}, dtype);
    const Shape& shape = t.x.tensor().shape;
    const Workspace space(ops, ops.norm_workspace(300, 100));
    const Owned y(dtype, shape), dy = random_tensor(dtype, shape, 5), dx(dtype, shape);
    const Owned dweight(DType::f32, {100}), dbias(DType::f32, {100});
    ops.norm(t.inputs(), {}, y, t.stats);
    ops.norm_grad({t.kind, t.x, t.stats, t.weight, dy, {}}, dx, dweight, dbias);
    return y.bits() + t.stats.bits() + dx.bits() + dweight.bits() + dbias.bits();
  });
}

TEST(Norm, RefusesTensorsThatDoNotFit) {
  const std::unique_ptr<Ops> ops = make_cpu_ops(1);
  const NormTensors t(NormKind::layer, {3, 20}, DType::f32);
  const Owned small(DType::f32, {3, 19}), y(DType::f32, {3, 20});
  EXPECT_THROW(ops->norm(t.inputs(), {}, small, t.stats), Error);
  EXPECT_THROW(ops->norm(t.inputs(t.x), {}, y, t.stats), Error);
  EXPECT_THROW(ops->norm_grad({t.kind, t.x, t.stats, t.weight, y, {}}, y, t.weight, t.bias), Error)
      << "without a workspace";
}

}  // namespace
}  // namespace rankine::test
