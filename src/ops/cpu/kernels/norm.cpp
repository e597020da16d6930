#include <cstring>

#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/scalar.h"

namespace rankine::RANKINE_ISA {
namespace {

// A row's mean (0 for rms) and the reciprocal of its deviation (of its rms).
struct RowStats {
  float mean, scale;
};

// What all rows of a call share. bias may be null.
template <class S>
struct Affine {
  const S *weight, *bias;
  int64_t width;
};

template <class S>
void add_residual(const S* x, const S* residual, S* sum, int64_t width) {
#pragma omp simd
  for (int64_t c = 0; c < width; ++c) down(sum[c], up(x[c]) + up(residual[c]));
}

template <class S, bool layer>
RowStats row_stats(const S* x, int64_t width, float epsilon) {
  float mean = 0;
  if constexpr (layer)
    mean = lane_sum(width, [x](int64_t c) { return up(x[c]); }) / static_cast<float>(width);
  const float squares = lane_sum(width, [x, mean](int64_t c) {
    const float centred = up(x[c]) - mean;
    return centred * centred;
  });
  return {mean, 1.0f / __builtin_sqrtf(squares / static_cast<float>(width) + epsilon)};
}

template <class S>
void normalize_row(const Affine<S>& affine, const S* x, RowStats stats, S* y) {
  const S *weight = affine.weight, *bias = affine.bias;
  const int64_t width = affine.width;
  if (bias != nullptr) {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c)
      down(y[c], (up(x[c]) - stats.mean) * stats.scale * up(weight[c]) + up(bias[c]));
  } else {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c)
      down(y[c], (up(x[c]) - stats.mean) * stats.scale * up(weight[c]));
  }
}

template <bool layer>
RowStats load_stats(const float* stats, int64_t row) {
  if constexpr (layer) return {stats[2 * row], stats[2 * row + 1]};
  return {0, stats[row]};
}

template <bool layer>
void store_stats(float* stats, int64_t row, RowStats values) {
  if constexpr (layer) {
    stats[2 * row] = values.mean;
    stats[2 * row + 1] = values.scale;
  } else {
    stats[row] = values.scale;
  }
}

template <class S, bool layer>
void norm_rows(const NormCall& call) {
  const int64_t width = call.width;
  const Affine<S> affine{static_cast<const S*>(call.weight), static_cast<const S*>(call.bias),
                         width};
  const S *x = static_cast<const S*>(call.x), *residual = static_cast<const S*>(call.residual);
  S *sum = static_cast<S*>(call.sum), *y = static_cast<S*>(call.y);
  for_rows(call.rows, width, call.threads, [&, x, residual, sum, y, width](int64_t r) {
    const S* input = x + r * width;
    if (sum != nullptr) {
      S* total = sum + r * width;
      if (residual != nullptr)
        add_residual(input, residual + r * width, total, width);
      else if (total != input)
        std::memcpy(total, input, static_cast<size_t>(width) * sizeof(S));
      input = total;
    }
    const RowStats stats = row_stats<S, layer>(input, width, call.epsilon);
    if (call.stats != nullptr) store_stats<layer>(call.stats, r, stats);
    normalize_row(affine, input, stats, y + r * width);
  });
}

template <class S, bool layer>
void norm_again_rows(const NormCall& call) {
  const int64_t width = call.width;
  const Affine<S> affine{static_cast<const S*>(call.weight), static_cast<const S*>(call.bias),
                         width};
  const S* x = static_cast<const S*>(call.x);
  S* y = static_cast<S*>(call.y);
  for_rows(call.rows, width, call.threads, [&, x, y, width](int64_t r) {
    normalize_row(affine, x + r * width, load_stats<layer>(call.stats, r), y + r * width);
  });
}

// One row of the gradient: adds to dweight and dbias, then writes dx.
template <class S, bool layer>
void grad_row(const NormGradCall& call, int64_t row, float* dweight, float* dbias) {
  const int64_t width = call.width;
  const S* x = static_cast<const S*>(call.x) + row * width;
  const S* dy = static_cast<const S*>(call.dy) + row * width;
  const S* weight = static_cast<const S*>(call.weight);
  S* dx = static_cast<S*>(call.dx) + row * width;
  const auto [mean, scale] = load_stats<layer>(call.stats, row);
  float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
  for (int64_t c = 0; c < width; ++c) {
    const float d = up(dy[c]), unit = (up(x[c]) - mean) * scale, scaled = d * up(weight[c]);
    dweight[c] += d * unit;
    dot += scaled * unit;
    if constexpr (layer) {
      dbias[c] += d;
      sum += scaled;
    }
  }
  sum /= static_cast<float>(width);
  dot /= static_cast<float>(width);
  if (call.residual != nullptr) {
    const S* residual = static_cast<const S*>(call.residual) + row * width;
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) {
      const float unit = (up(x[c]) - mean) * scale;
      down(dx[c], up(residual[c]) + scale * (up(dy[c]) * up(weight[c]) - sum - unit * dot));
    }
  } else {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) {
      const float unit = (up(x[c]) - mean) * scale;
      down(dx[c], scale * (up(dy[c]) * up(weight[c]) - sum - unit * dot));
    }
  }
}

size_t workspace(int64_t rows, int64_t width) {
  return static_cast<size_t>(slab_count(rows, width) * 2 * width) * sizeof(float);
}

template <class S, bool layer>
void grad_rows(const NormGradCall& call) {
  float* partial = static_cast<float*>(call.workspace);
  const int64_t width = call.width, stride = 2 * width;
  for_slabs(call.rows, width, call.threads, [&, partial](int64_t slab, int64_t first, int64_t n) {
    float* sums = partial + slab * stride;
    std::memset(sums, 0, static_cast<size_t>(stride) * sizeof(float));
    for (int64_t r = first; r < first + n; ++r) grad_row<S, layer>(call, r, sums, sums + width);
  });
  const int64_t slabs = slab_count(call.rows, width);
  combine_slabs(partial, slabs, stride, call.dweight, width, call.accumulate);
  if (call.dbias != nullptr)
    combine_slabs(partial + width, slabs, stride, call.dbias, width, call.accumulate);
}

template <class S>
void norm(const NormCall& call) {
  call.layer ? norm_rows<S, true>(call) : norm_rows<S, false>(call);
}
template <class S>
void norm_again(const NormCall& call) {
  call.layer ? norm_again_rows<S, true>(call) : norm_again_rows<S, false>(call);
}
template <class S>
void norm_grad(const NormGradCall& call) {
  call.layer ? grad_rows<S, true>(call) : grad_rows<S, false>(call);
}

}  // namespace

NormKernels norm_kernels() {
  return {.norm = {norm<float>, norm<Bf16>, norm<F16>},
          .norm_again = {norm_again<float>, norm_again<Bf16>, norm_again<F16>},
          .norm_grad = {norm_grad<float>, norm_grad<Bf16>, norm_grad<F16>},
          .workspace = workspace};
}

}  // namespace rankine::RANKINE_ISA
