#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rankine {
namespace {

std::vector<double> plain_frequencies(const RopeConfig& rope, int64_t head_dim) {
  std::vector<double> f(static_cast<size_t>(head_dim / 2));
  for (size_t i = 0; i < f.size(); ++i)
    f[i] = std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
  return f;
}

void scale_llama3(const RopeConfig& rope, std::vector<double>& frequencies) {
  const auto original = static_cast<double>(rope.original_positions);
  for (double& f : frequencies) {
    const double wavelength = 2 * std::numbers::pi / f;
    if (wavelength < original / rope.high_freq_factor) continue;
    if (wavelength > original / rope.low_freq_factor) {
      f /= rope.factor;
      continue;
    }
    const double smooth = (original / wavelength - rope.low_freq_factor) /
                          (rope.high_freq_factor - rope.low_freq_factor);
    f = (1 - smooth) * f / rope.factor + smooth * f;
  }
}

void scale_yarn(const RopeConfig& rope, int64_t head_dim, std::vector<double>& frequencies) {
  const auto dim = static_cast<double>(head_dim);
  const auto correction = [&](double rotations) {
    return dim *
           std::log(static_cast<double>(rope.original_positions) /
                    (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(rope.theta));
  };
  double low = correction(rope.beta_fast), high = correction(rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / rope.factor * ramp + frequencies[i] * (1 - ramp);
  }
}

}  // namespace

std::vector<float> rope_table(const ModelConfig& config, int64_t positions) {
  const RopeConfig& rope = config.rope;
  std::vector<double> frequencies = plain_frequencies(rope, config.head_dim);
  float scale = 1;
  if (rope.kind == RopeKind::linear)
    for (double& f : frequencies) f /= rope.factor;
  if (rope.kind == RopeKind::llama3) scale_llama3(rope, frequencies);
  if (rope.kind == RopeKind::yarn) {
    scale_yarn(rope, config.head_dim, frequencies);
    scale = static_cast<float>(rope.attention_factor > 0 ? rope.attention_factor
                                                         : 0.1 * std::log(rope.factor) + 1);
  }
  const size_t half = frequencies.size();
  std::vector<float> table(static_cast<size_t>(positions) * half * 2);
  for (size_t p = 0; p < static_cast<size_t>(positions); ++p)
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(p) * static_cast<float>(frequencies[i]);
      table[p * 2 * half + i] = std::cos(angle) * scale;
      table[p * 2 * half + half + i] = std::sin(angle) * scale;
    }
  return table;
}

}  // namespace rankine
