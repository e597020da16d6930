#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/scalar.h"

namespace rankine::RANKINE_ISA {
namespace {

// An activation's value and its derivative at the pre-activation.
struct Slope {
  float value, derivative;
};

[[gnu::always_inline]] inline float sigmoid(float x) {
  return 1.0f / (1.0f + exp_fast(-x));
}

struct GeluExact {  // x Phi(x) with the normal distribution's Phi
  [[gnu::always_inline]] static float value(float x) {
    return x * (0.5f + 0.5f * erf_fast(x * 0.70710678f));
  }
  [[gnu::always_inline]] static Slope slope(float x) {
    const float phi = 0.5f + 0.5f * erf_fast(x * 0.70710678f);
    const float density = 0.39894228f * exp_fast(-0.5f * x * x);
    return {x * phi, phi + x * density};
  }
};

struct GeluTanh {  // x (1 + tanh u) / 2 = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3)
  [[gnu::always_inline]] static float value(float x) {
    return x * sigmoid(x * (1.5957691216f + 0.0713548162726f * x * x));
  }
  [[gnu::always_inline]] static Slope slope(float x) {
    const float squared = x * x;
    const float s = sigmoid(x * (1.5957691216f + 0.0713548162726f * squared));
    const float inner = 1.5957691216f + 3.0f * 0.0713548162726f * squared;
    return {x * s, s + x * s * (1.0f - s) * inner};
  }
};

template <class S, class Function>
void activate_block(const S* pre, S* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) down(y[i], Function::value(up(pre[i])));
}

template <class S, class Function>
void activate(const ActivationCall& call) {
  const S* pre = static_cast<const S*>(call.pre);
  S* y = static_cast<S*>(call.y);
  for_blocks(call.rows * call.width, call.threads, [=](int64_t first, int64_t count) {
    activate_block<S, Function>(pre + first, y + first, count);
  });
}

template <class S, class Function>
void grad_block(const S* pre, S* dy_to_y, S* dpre, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const Slope slope = Function::slope(up(pre[i]));
    const float dy = up(dy_to_y[i]);
    down(dy_to_y[i], slope.value);
    down(dpre[i], dy * slope.derivative);
  }
}

template <class S, class Function>
void activate_grad(const ActivationCall& call) {
  const S* pre = static_cast<const S*>(call.pre);
  S *y = static_cast<S*>(call.y), *dpre = static_cast<S*>(call.dpre);
  for_blocks(call.rows * call.width, call.threads, [=](int64_t first, int64_t count) {
    grad_block<S, Function>(pre + first, y + first, dpre + first, count);
  });
}

// body(offset of the gate, offset of y, count) for pieces of rows; up lies `width` behind the gate.
template <class Body>
void for_gated_blocks(const ActivationCall& call, const Body& body) {
  const int64_t pieces = blocks_of(call.width, block_elements), tasks = call.rows * pieces;
  for_each(tasks, threads_for(call.rows * call.width, call.threads), [&, pieces](int64_t t) {
    const int64_t row = t / pieces, first = t % pieces * block_elements;
    body(2 * row * call.width + first, row * call.width + first,
         smaller(block_elements, call.width - first));
  });
}

template <class S>
void swiglu_block(const S* gate, const S* linear, S* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float g = up(gate[i]);
    down(y[i], g * sigmoid(g) * up(linear[i]));
  }
}

template <class S>
void swiglu(const ActivationCall& call) {
  const S* pre = static_cast<const S*>(call.pre);
  S* y = static_cast<S*>(call.y);
  const int64_t width = call.width;
  for_gated_blocks(call, [=](int64_t gate, int64_t at, int64_t count) {
    swiglu_block(pre + gate, pre + gate + width, y + at, count);
  });
}

template <class S>
struct Gated {  // the two halves of a piece
  S *gate, *linear;
};

template <class S>
void swiglu_grad_block(Gated<const S> pre, S* dy_to_y, Gated<S> dpre, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float g = up(pre.gate[i]), linear = up(pre.linear[i]), dy = up(dy_to_y[i]);
    const float s = sigmoid(g), silu = g * s;
    down(dy_to_y[i], silu * linear);
    down(dpre.gate[i], dy * linear * (s + silu * (1.0f - s)));
    down(dpre.linear[i], dy * silu);
  }
}

template <class S>
void swiglu_grad(const ActivationCall& call) {
  const S* pre = static_cast<const S*>(call.pre);
  S *y = static_cast<S*>(call.y), *dpre = static_cast<S*>(call.dpre);
  const int64_t width = call.width;
  for_gated_blocks(call, [=](int64_t gate, int64_t at, int64_t count) {
    swiglu_grad_block<S>({pre + gate, pre + gate + width}, y + at,
                         {dpre + gate, dpre + gate + width}, count);
  });
}

}  // namespace

ActivationKernels activation_kernels() {
  return {
      .gelu_exact = {activate<float, GeluExact>, activate<Bf16, GeluExact>,
                     activate<F16, GeluExact>},
      .gelu_tanh = {activate<float, GeluTanh>, activate<Bf16, GeluTanh>, activate<F16, GeluTanh>},
      .swiglu = {swiglu<float>, swiglu<Bf16>, swiglu<F16>},
      .gelu_exact_grad = {activate_grad<float, GeluExact>, activate_grad<Bf16, GeluExact>,
                          activate_grad<F16, GeluExact>},
      .gelu_tanh_grad = {activate_grad<float, GeluTanh>, activate_grad<Bf16, GeluTanh>,
                         activate_grad<F16, GeluTanh>},
      .swiglu_grad = {swiglu_grad<float>, swiglu_grad<Bf16>, swiglu_grad<F16>}};
}

}  // namespace rankine::RANKINE_ISA
