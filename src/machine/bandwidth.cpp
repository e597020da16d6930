#include <algorithm>
#include <atomic>
#include <vector>

#include "machine/peak.h"
#include "machine/process.h"
#include "tensor/arena.h"

namespace rankine {
namespace {

// Each array is far larger than any cache.
constexpr size_t stream_elements = size_t{24} << 20;

struct Streams {
  float *p, *m, *v;
  float* g;
};

void pass(const Streams& s, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const float g = s.g[i];
    s.m[i] = s.m[i] * 0.5f + g;
    s.v[i] = s.v[i] * 0.5f + g;
    s.p[i] = s.p[i] * 0.5f + g;
  }
}

// Runs work(begin, end) on equal parts of the elements, one thread each: those that compute, since
// others would share processors with them while they spin for work.
template <class Work>
void in_parts(size_t threads, size_t elements, Work&& work) {
  const auto count = static_cast<int>(threads);
#pragma omp parallel for schedule(static, 1) num_threads(count)
  for (size_t t = 0; t < threads; ++t) work(elements * t / threads, elements * (t + 1) / threads);
}

// Memory comes a line at a time, faster from several places than from one after the other, and
// faster still when asked for early. These gave most of what was tried, on one core and on two;
// pieces whose quarters lie a power of two apart gave less.
constexpr size_t line_words = 8, places = 4, words_at_once = 2 * line_words;
constexpr size_t words_ahead = 24 * line_words;
constexpr size_t piece_words = places * 4386 * words_at_once, pieces = 180;
constexpr size_t read_words = pieces * piece_words;

// Reads a piece; some words behind each place may be asked for.
uint64_t touch(const uint64_t* words) {
  uint64_t sums[places] = {};
  constexpr size_t part = piece_words / places;
  for (size_t i = 0; i < part; i += words_at_once) {
    for (size_t p = 0; p < places; ++p)
      for (size_t j = 0; j < words_at_once; j += line_words)
        __builtin_prefetch(words + p * part + i + j + words_ahead);
    for (size_t j = 0; j < words_at_once; j += line_words)
      for (size_t p = 0; p < places; ++p) sums[p] += words[p * part + i + j];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

MemoryPlan reading_plan() {
  MemoryPlan plan;
  plan.add({"words", "measurement", read_words * sizeof(uint64_t)});
  return plan;
}

}  // namespace

double measure_stream_bytes(int threads, int rounds) {
  // An arena, for its huge pages: what is measured is memory, not address translation.
  MemoryPlan plan;
  for (const char* name : {"p", "m", "v", "g"})
    plan.add({name, "measurement", stream_elements * sizeof(float)});
  Arena arena(plan, Tier::device);
  const auto take = [&](const char* name) {
    return static_cast<float*>(
        arena.take(name, DType::f32, Shape{static_cast<int64_t>(stream_elements)}).data);
  };
  const Streams s{take("p"), take("m"), take("v"), take("g")};
  const auto parts = static_cast<size_t>(std::max(1, threads));
  in_parts(parts, stream_elements, [&](size_t begin, size_t end) {
    std::fill(s.g + begin, s.g + end, 1.0f);
    pass(s, begin, end);
  });
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const double start = monotonic_seconds();
    in_parts(parts, stream_elements, [&](size_t begin, size_t end) { pass(s, begin, end); });
    seconds.push_back(monotonic_seconds() - start);
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  constexpr double bytes_per_element = 28;
  return bytes_per_element * static_cast<double>(stream_elements) /
         seconds[static_cast<size_t>(rounds / 2)];
}

MemoryReading::MemoryReading(int threads)
    : threads_(static_cast<size_t>(std::max(1, threads))), arena_(reading_plan(), Tier::device) {
  const Tensor words = arena_.take("words", DType::i64, Shape{static_cast<int64_t>(read_words)});
  auto* const data = static_cast<uint64_t*>(words.data);
  in_parts(threads_, read_words,
           [&](size_t begin, size_t end) { std::fill(data + begin, data + end, uint64_t{1}); });
  words_ = data;
}

double MemoryReading::bytes_per_second() {
  std::atomic<uint64_t> total = 0;
  // Pieces are taken in turn: whoever is fast takes more, as the threads of decoding do.
  const auto read = [&](size_t count) {
    const double start = monotonic_seconds();
#pragma omp parallel for schedule(dynamic, 1) num_threads(static_cast <int>(threads_))
    for (size_t piece = 0; piece < count; ++piece) total += touch(words_ + piece * piece_words);
    return sizeof(uint64_t) * static_cast<double>(count * piece_words) /
           (monotonic_seconds() - start);
  };
  read(pieces / 8);  // until threads of other work no longer poll for more
  const double rate = read(pieces);
  expect(total > 0, "memory that was read");
  return rate;
}

}  // namespace rankine
