#include "unit/ops/pointwise_support.h"

namespace rankine::test {
namespace {

constexpr AdamWStep base{.lr = 1e-3f,
                         .beta1 = 0.9f,
                         .beta2 = 0.95f,
                         .epsilon = 1e-8f,
                         .weight_decay = 0.1f,
                         .gradient_scale = 0.5f};

AdamWStep at_step(int t) {
  AdamWStep step = base;
  step.bias_correction1 = static_cast<float>(1 - std::pow(0.9, t));
  step.bias_correction2 = static_cast<float>(1 - std::pow(0.95, t));
  return step;
}

struct States {
  States(int64_t count, DType compute_type)
      : weights(random_tensor(DType::f32, {count}, 1)),
        momentum(DType::f32, {count}),
        variance(DType::f32, {count}),
        compute(compute_type, {count}) {}
  Tensor copy() const { return compute.tensor().dtype == DType::f32 ? Tensor{} : compute.tensor(); }
  std::string bits() const {
    return weights.bits() + momentum.bits() + variance.bits() + compute.bits();
  }
  Owned weights, momentum, variance, compute;
};

// p *= 1 - lr wd; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
// p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps), in f64.
struct Reference {
  Values weights, momentum, variance;
  void step(const Values& grads, int t) {
    for (size_t i = 0; i < grads.size(); ++i) {
      const double g = grads[i] * 0.5;
      weights[i] *= 1 - 1e-3 * 0.1;
      momentum[i] = 0.9 * momentum[i] + (1 - 0.9) * g;
      variance[i] = 0.95 * variance[i] + (1 - 0.95) * g * g;
      weights[i] -= 1e-3 / (1 - std::pow(0.9, t)) * momentum[i] /
                    (std::sqrt(variance[i]) / std::sqrt(1 - std::pow(0.95, t)) + 1e-8);
    }
  }
};

TEST(AdamW, AgreesWithF64OverManySteps) {
  on_all([](Ops& ops, DType dtype) {
    for (const int64_t count : {1, 7, 33, 5000}) {
      const States states(count, dtype);
      Reference reference{states.weights.values(), Values(static_cast<size_t>(count)),
                          Values(static_cast<size_t>(count))};
      for (int t = 1; t <= 20; ++t) {
        const auto seed = static_cast<uint64_t>(100 + t);
        const Owned grads = random_tensor(DType::f32, {count}, seed, t % 5 == 0 ? 10 : 0.01f);
        ops.adamw(at_step(t), states.weights, grads, states.momentum, states.variance,
                  states.copy());
        reference.step(grads.values(), t);
      }
      expect_near(states.momentum.values(), reference.momentum, {.steps = 64, .magnitude = 4});
      expect_near(states.variance.values(), reference.variance, {.steps = 64, .magnitude = 4});
      expect_near(states.weights.values(), reference.weights, {.steps = 24});
      if (dtype == DType::f32) continue;
      const Owned rounded(dtype, {count}, states.weights.values());
      EXPECT_TRUE(states.compute.bits() == rounded.bits()) << "the copy is the rounded weight";
      EXPECT_TRUE(states.compute.guard_intact());
    }
  });
}

TEST(AdamW, FirstStepMovesByTheLearningRate) {
  for (const std::string& set : pointwise_sets()) {
    AdamWStep step = at_step(1);
    step.weight_decay = 0;
    const Owned weights(DType::f32, {3}, {1, 1, 1}), grads(DType::f32, {3}, {5, -0.01, 0});
    const Owned momentum(DType::f32, {3}), variance(DType::f32, {3});
    make_cpu_ops(1, set)->adamw(step, weights, grads, momentum, variance, {});
    expect_near(weights.values(), {1 - 1e-3, 1 + 1e-3, 1}, {.steps = 4});
  }
}

TEST(AdamW, BitsDoNotDependOnTheCutOrThreads) {
  same_for_any_threads([](Ops& ops, DType dtype) {
    constexpr int64_t count = 9001, cut = 1237;
    const States whole(count, dtype), parts(count, dtype);
    const Owned grads = random_tensor(DType::f32, {count}, 9);
    for (int t = 1; t <= 3; ++t) {
      ops.adamw(at_step(t), whole.weights, grads, whole.momentum, whole.variance, whole.copy());
      for (const auto& [first, size] : {std::array<int64_t, 2>{0, cut}, {cut, count - cut}}) {
        const auto range = [first = first, size = size](const Tensor& x) {
          return x.empty() ? x : x.range(first, size);
        };
        ops.adamw(at_step(t), range(parts.weights), range(grads), range(parts.momentum),
                  range(parts.variance), range(parts.copy()));
      }
    }
    EXPECT_TRUE(whole.bits() == parts.bits()) << "cutting the range changes bits";
    return whole.bits();
  });
}

TEST(AdamW, RefusesTensorsThatDoNotFit) {
  const States states(4, DType::bf16);
  const Owned grads(DType::f32, {3});
  EXPECT_THROW(make_cpu_ops(1)->adamw(at_step(1), states.weights, grads, states.momentum,
                                      states.variance, {}),
               Error);
}

}  // namespace
}  // namespace rankine::test
