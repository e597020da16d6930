#include "ops/cpu/kernels/blocks.h"
#include "ops/cpu/kernels/parts.h"
#include "ops/cpu/kernels/scalar.h"

namespace rankine::RANKINE_ISA {
namespace {

template <class S>
float largest(const S* x, int64_t count) {
  float most = -3.0e38f;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < count; ++i) {
    const float v = up(x[i]);
    most = v > most ? v : most;
  }
  return most;
}

// Sum of e^(x - most), in short f32 sums joined in f64. A NaN must come out as NaN: exp_fast, whose
// clamp makes it finite, would hide an overflow from the loss scaler.
template <class S>
double exp_sum(const S* x, int64_t count, float most) {
  constexpr int64_t block = 1024;
  double total = 0;
  for (int64_t first = 0; first < count; first += block) {
    const S* from = x + first;
    const float sum = lane_sum(smaller(block, count - first), [from, most](int64_t i) {
      const float v = up(from[i]) - most;
      return v == v ? exp_fast(v) : v;
    });
    total += static_cast<double>(sum);
  }
  return total;
}

template <class S>
void clear(S* x, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) down(x[i], 0.0f);
}

// x = e^(x - most) * factor.
template <class S>
void scaled_exp(S* x, int64_t count, float most, float factor) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) down(x[i], exp_fast(up(x[i]) - most) * factor);
}

template <class S>
float row_loss(const CrossEntropyCall& call, S* x, int32_t target) {
  const int64_t vocabulary = call.vocabulary, padding = call.padded_vocabulary - vocabulary;
  if (target < 0) {
    if (call.gradient) clear(x, call.padded_vocabulary);
    return 0;
  }
  const float most = largest(x, vocabulary);
  const double denominator = exp_sum(x, vocabulary, most);
  const double loss =
      __builtin_log(denominator) + static_cast<double>(most) - static_cast<double>(up(x[target]));
  if (call.gradient) {
    const double factor = static_cast<double>(call.gradient_scale) / denominator;
    scaled_exp(x, vocabulary, most, static_cast<float>(factor));
    // p - 1 without cancellation for a target that is nearly certain.
    down(x[target], static_cast<float>(__builtin_expm1(-loss)) * call.gradient_scale);
    clear(x + vocabulary, padding);
  }
  return static_cast<float>(loss);
}

template <class S>
void cross_entropy(const CrossEntropyCall& call) {
  S* logits = static_cast<S*>(call.logits);
  for_rows(call.rows, call.padded_vocabulary, call.threads, [&, logits](int64_t r) {
    call.losses[r] = row_loss(call, logits + r * call.padded_vocabulary, call.targets[r]);
  });
}

// ---- the vocabulary split over ranks

constexpr int64_t statistics_per_row = 3;  // largest, sum of e^(x - largest), target's logit

template <class S>
void statistics(const CrossEntropyPartCall& call) {
  const S* logits = static_cast<const S*>(call.logits);
  for_rows(call.rows, call.padded_columns, call.threads, [&, logits](int64_t r) {
    const S* x = logits + r * call.padded_columns;
    double* out = call.statistics + r * statistics_per_row;
    const int64_t target = call.targets[r] - call.first;
    const float most = largest(x, call.columns);
    out[0] = static_cast<double>(most);
    out[1] = call.targets[r] < 0 ? 0 : exp_sum(x, call.columns, most);
    out[2] = call.targets[r] >= 0 && target >= 0 && target < call.columns
                 ? static_cast<double>(up(x[target]))
                 : 0;
  });
}

// The parts' sums join in order of the parts, whoever does it.
template <class S>
float joined_row_loss(const CrossEntropyPartCall& call, S* x, int64_t r) {
  if (call.targets[r] < 0) {
    if (call.gradient) clear(x, call.padded_columns);
    return 0;
  }
  const auto of = [&](int64_t part) {
    return call.statistics + (part * call.rows + r) * statistics_per_row;
  };
  double most = of(0)[0], denominator = 0, target_logit = 0;
  for (int64_t part = 1; part < call.parts; ++part) most = of(part)[0] > most ? of(part)[0] : most;
  for (int64_t part = 0; part < call.parts; ++part) {
    denominator += of(part)[1] * __builtin_exp(of(part)[0] - most);
    target_logit += of(part)[2];
  }
  const double loss = __builtin_log(denominator) + most - target_logit;
  if (call.gradient) {
    const double factor = static_cast<double>(call.gradient_scale) / denominator;
    scaled_exp(x, call.columns, static_cast<float>(most), static_cast<float>(factor));
    const int64_t target = call.targets[r] - call.first;
    if (target >= 0 && target < call.columns)
      down(x[target], static_cast<float>(__builtin_expm1(-loss)) * call.gradient_scale);
    clear(x + call.columns, call.padded_columns - call.columns);
  }
  return static_cast<float>(loss);
}

template <class S>
void joined(const CrossEntropyPartCall& call) {
  S* logits = static_cast<S*>(call.logits);
  for_rows(call.rows, call.padded_columns, call.threads, [&, logits](int64_t r) {
    call.losses[r] = joined_row_loss(call, logits + r * call.padded_columns, r);
  });
}

}  // namespace

CrossEntropyKernels cross_entropy_kernels() {
  return {.cross_entropy = {cross_entropy<float>, cross_entropy<Bf16>, cross_entropy<F16>},
          .statistics = {statistics<float>, statistics<Bf16>, statistics<F16>},
          .joined = {joined<float>, joined<Bf16>, joined<F16>}};
}

}  // namespace rankine::RANKINE_ISA
