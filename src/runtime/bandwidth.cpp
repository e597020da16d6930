#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/peak.h"
#include "runtime/process.h"

namespace rankine {
namespace {

// Each array is far larger than any cache.
constexpr size_t stream_elements = size_t{24} << 20;

struct Streams {
  float *p, *m, *v;
  const float* g;
};

void pass(const Streams& s, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const float g = s.g[i];
    s.m[i] = s.m[i] * 0.5f + g;
    s.v[i] = s.v[i] * 0.5f + g;
    s.p[i] = s.p[i] * 0.5f + g;
  }
}

// Runs work(begin, end) on equal parts of the elements, one thread each.
template <class Work>
void in_parts(size_t threads, Work&& work) {
  std::vector<std::jthread> running;
  for (size_t t = 0; t < threads; ++t)
    running.emplace_back([&work, t, threads] {
      work(stream_elements * t / threads, stream_elements * (t + 1) / threads);
    });
}

}  // namespace

double measure_stream_bytes(int threads, int rounds) {
  std::vector<std::unique_ptr<float[]>> arrays;
  for (int i = 0; i < 4; ++i) arrays.push_back(std::make_unique_for_overwrite<float[]>(stream_elements));
  const Streams s{arrays[0].get(), arrays[1].get(), arrays[2].get(), arrays[3].get()};
  const auto parts = static_cast<size_t>(std::max(1, threads));
  in_parts(parts, [&](size_t begin, size_t end) {
    for (const auto& array : arrays) std::fill(array.get() + begin, array.get() + end, 1.0f);
  });
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const double start = monotonic_seconds();
    in_parts(parts, [&](size_t begin, size_t end) { pass(s, begin, end); });
    seconds.push_back(monotonic_seconds() - start);
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  constexpr double bytes_per_element = 28;
  return bytes_per_element * static_cast<double>(stream_elements) /
         seconds[static_cast<size_t>(rounds / 2)];
}

}  // namespace rankine
