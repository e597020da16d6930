#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/scalar.h"

// Compiled without contraction to fused multiply-adds: how a range is cut among ranks and threads,
// and the instruction set, leave every bit as it is.
namespace rankine::RANKINE_ISA {
namespace {

// The pointers of one block.
template <class S>
struct Block {
  float* weights;
  const float* grads;
  float *momentum, *variance;
  S* compute;
};

template <class S, bool copies>
void step_block(const AdamWCall& call, const Block<S>& block, int64_t count) {
  const float beta1 = call.beta1, beta2 = call.beta2, rest1 = 1.0f - beta1, rest2 = 1.0f - beta2;
  const float kept = 1.0f - call.lr * call.weight_decay, rate = call.lr / call.bias_correction1;
  const float deviation_scale = 1.0f / __builtin_sqrtf(call.bias_correction2);
  const float epsilon = call.epsilon, gradient_scale = call.gradient_scale;
  const auto [weights, grads, momentum, variance, compute] = block;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float g = grads[i] * gradient_scale;
    const float m = beta1 * momentum[i] + rest1 * g;
    const float v = beta2 * variance[i] + rest2 * (g * g);
    const float deviation = __builtin_sqrtf(v) * deviation_scale + epsilon;
    const float weight = weights[i] * kept - rate * m / deviation;
    momentum[i] = m;
    variance[i] = v;
    weights[i] = weight;
    if constexpr (copies) down(compute[i], weight);
  }
}

template <class S, bool copies>
void adamw(const AdamWCall& call) {
  for_blocks(call.count, call.threads, [&call](int64_t first, int64_t count) {
    S* compute = copies ? static_cast<S*>(call.compute) + first : nullptr;
    step_block<S, copies>(call,
                          {call.weights + first, call.grads + first, call.momentum + first,
                           call.variance + first, compute},
                          count);
  });
}

}  // namespace

OptimizerKernels optimizer_kernels() {
  return {.adamw = {adamw<float, false>, adamw<Bf16, true>, adamw<F16, true>}};
}

}  // namespace rankine::RANKINE_ISA
