#pragma once
#include <array>
#include <cstdint>
#include <string_view>

// Counter-based random numbers: a value is a function of (seed, purpose, index), never of rank,
// thread or call order. The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3", SC 2011).
namespace rankine {

struct RandomKey {
  uint32_t low = 0, high = 0;
};

// 64-bit FNV-1a of a text; names the purpose of a random stream.
constexpr uint64_t hash_text(std::string_view text, uint64_t start = 0xcbf29ce484222325u) {
  for (const char c : text) start = (start ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return start;
}

constexpr uint64_t mix_bits(uint64_t x) {  // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr RandomKey random_key(uint64_t seed, std::string_view purpose) {
  const uint64_t bits = mix_bits(mix_bits(seed + 0x9e3779b97f4a7c15u) ^ hash_text(purpose));
  return {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
}

// Four independent 32-bit words for the 128-bit counter (index, stream).
constexpr std::array<uint32_t, 4> philox(RandomKey key, uint64_t index, uint64_t stream = 0) {
  std::array<uint32_t, 4> x{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                            static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * x[0], b = uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key.low, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key.high, static_cast<uint32_t>(a)};
    key.low += 0x9E3779B9u;
    key.high += 0xBB67AE85u;
  }
  return x;
}

// Uniform in [0, 1) with 24 random bits.
constexpr float unit_float(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

}  // namespace rankine
