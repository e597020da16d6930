#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

const ActivationKind kinds[] = {ActivationKind::gelu_exact, ActivationKind::gelu_tanh,
                                ActivationKind::swiglu};
const std::array<int64_t, 2> all_sizes[] = {{1, 1}, {3, 20}, {2, 4097}, {7, 1500}};

int64_t pre_width(ActivationKind kind, int64_t width) {
  return kind == ActivationKind::swiglu ? 2 * width : width;
}

Values reference(ActivationKind kind, const Values& pre, int64_t width) {
  Values y;
  const auto stride = static_cast<size_t>(pre_width(kind, width)),
             columns = static_cast<size_t>(width);
  for (size_t row = 0; row < pre.size(); row += stride)
    for (size_t c = 0; c < columns; ++c) {
      const double x = pre[row + c];
      const double cubic = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
      switch (kind) {
        case ActivationKind::gelu_exact:
          y.push_back(x * std::erfc(-x / std::sqrt(2)) / 2);
          break;
        case ActivationKind::gelu_tanh:
          y.push_back(x * (1 + std::tanh(cubic)) / 2);
          break;
        case ActivationKind::swiglu:
          y.push_back(x / (1 + std::exp(-x)) * pre[row + columns + c]);
          break;
      }
    }
  return y;
}

template <class Body>
void on_all_activations(const Body& body) {
  on_all([&](Ops& ops, DType dtype) {
    for (const ActivationKind kind : kinds)
      for (const auto& [rows, width] : all_sizes) {
        SCOPED_TRACE(fmt::format("activation {} of [{}, {}]", static_cast<int>(kind), rows, width));
        const Owned pre = random_tensor(dtype, {rows, pre_width(kind, width)}, 1, 6);
        body(ops, kind, pre, Shape{rows, width});
        if (testing::Test::HasFatalFailure()) return;
      }
  });
}

TEST(Activation, AgreesWithF64) {
  on_all_activations([](Ops& ops, ActivationKind kind, const Owned& pre, const Shape& shape) {
    const DType dtype = pre.tensor().dtype;
    const Owned y(dtype, shape);
    ops.activation(kind, pre, y);
    expect_near(y.values(), reference(kind, pre.values(), shape[1]), {dtype, 16, 6});
  });
}

TEST(Activation, GradientAgreesWithDifferencesAndRestoresTheOutput) {
  on_all_activations([](Ops& ops, ActivationKind kind, const Owned& pre, const Shape& shape) {
    const DType dtype = pre.tensor().dtype;
    const Owned y(dtype, shape), dy_to_y = random_tensor(dtype, shape, 2);
    const Owned dpre(dtype, pre.tensor().shape);
    const Values dy = dy_to_y.values();
    ops.activation(kind, pre, y);
    ops.activation_grad(kind, pre, dy_to_y, dpre);
    expect_near(dy_to_y.values(), y.values(), {dtype, 8, 6});
    expect_gradient(dpre.values(), pre.values(),
                    [&](const Values& x) { return dot(reference(kind, x, shape[1]), dy); },
                    {dtype, 48, 6});
  });
}

TEST(Activation, FarFromZero) {
  for (const std::string& set : pointwise_sets()) {
    const std::unique_ptr<Ops> ops = make_cpu_ops(1, set);
    const Owned pre(DType::f32, {1, 6}, {-1e4, -200, -20, 20, 200, 1e4}), y(DType::f32, {1, 6});
    for (const ActivationKind kind : {ActivationKind::gelu_exact, ActivationKind::gelu_tanh}) {
      const Owned dy_to_y(DType::f32, {1, 6}, Values(6, 1.0)), dpre(DType::f32, {1, 6});
      ops->activation(kind, pre, y);
      expect_near(y.values(), {0, 0, 0, 20, 200, 1e4}, {.magnitude = 20});
      ops->activation_grad(kind, pre, dy_to_y, dpre);
      expect_near(dpre.values(), {0, 0, 0, 1, 1, 1}, {.magnitude = 20});
    }
  }
}

TEST(Activation, DoesNotDependOnThreads) {
  same_for_any_threads([](Ops& ops, DType dtype) {
    std::string bits;
    for (const ActivationKind kind : kinds) {
      const Owned pre = random_tensor(dtype, {3, pre_width(kind, 4999)}, 1, 6);
      const Owned y(dtype, {3, 4999}), dy = random_tensor(dtype, {3, 4999}, 2);
      const Owned dpre(dtype, pre.tensor().shape);
      ops.activation(kind, pre, y);
      ops.activation_grad(kind, pre, dy, dpre);
      bits += y.bits() + dy.bits() + dpre.bits();
    }
    return bits;
  });
}

TEST(Activation, RefusesTensorsThatDoNotFit) {
  const std::unique_ptr<Ops> ops = make_cpu_ops(1);
  const Owned pre(DType::f32, {3, 20}), y(DType::f32, {3, 20}), half(DType::bf16, {3, 20});
  EXPECT_THROW(ops->activation(ActivationKind::swiglu, pre, y), Error);
  EXPECT_THROW(ops->activation(ActivationKind::gelu_tanh, half, y), Error);
}

}  // namespace
}  // namespace rankine::test
