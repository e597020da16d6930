#pragma once
#include <cstdint>

// base/random.h's Philox4x32-10 for runs of counters, written again so that it is compiled for each
// instruction set: words[4 * i + w] is word w of counter first + i.
namespace rankine::RANKINE_ISA {

struct PhiloxKey {
  uint32_t low, high;
};

template <int64_t counters>
static inline void philox_words(PhiloxKey key, uint64_t first, uint64_t stream, uint32_t* words) {
#pragma omp simd
  for (int64_t i = 0; i < counters; ++i) {
    const uint64_t index = first + static_cast<uint64_t>(i);
    uint32_t a = static_cast<uint32_t>(index), b = static_cast<uint32_t>(index >> 32);
    uint32_t c = static_cast<uint32_t>(stream), d = static_cast<uint32_t>(stream >> 32);
    uint32_t low = key.low, high = key.high;
    for (int round = 0; round < 10; ++round) {
      const uint64_t left = uint64_t{0xD2511F53u} * a, right = uint64_t{0xCD9E8D57u} * c;
      a = static_cast<uint32_t>(right >> 32) ^ b ^ low;
      b = static_cast<uint32_t>(right);
      c = static_cast<uint32_t>(left >> 32) ^ d ^ high;
      d = static_cast<uint32_t>(left);
      low += 0x9E3779B9u;
      high += 0xBB67AE85u;
    }
    words[4 * i] = a;
    words[4 * i + 1] = b;
    words[4 * i + 2] = c;
    words[4 * i + 3] = d;
  }
}

}  // namespace rankine::RANKINE_ISA
