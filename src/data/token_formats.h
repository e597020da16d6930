#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

// The token file formats, read from memory. Nothing a file says about its own size is believed
// before it is checked. Faults throw Error{data} that begins with `name`.
namespace rankine {

enum class TokenWidth : uint8_t { u8 = 1, u16 = 2, u32 = 4 };  // bytes of one stored token

// `count` tokens from byte `offset` of a file on; little-endian.
struct TokenRun {
  uint64_t offset = 0, count = 0;
  bool operator==(const TokenRun&) const = default;
};

struct TokenRuns {
  TokenWidth width = TokenWidth::u16;
  std::vector<TokenRun> runs;  // in reading order, none empty
};

using FileBytes = std::span<const uint8_t>;

// llm.c: 256 int32 (magic, version, count), then tokens. Magic 20240520 version 1 is u16 (GPT-2),
// 20240801 version 7 is u32 (Llama 3).
bool looks_like_llmc(FileBytes file);
TokenRuns read_llmc(FileBytes file, std::string_view name);

// Megatron-LM indexed dataset: `index` is the .idx file, `bin_bytes` the size of the .bin file that
// the runs lie in. Sequences that follow each other in the .bin file become one run.
bool looks_like_megatron_index(FileBytes index);
TokenRuns read_megatron_index(FileBytes index, uint64_t bin_bytes, std::string_view name);

// nanoGPT: nothing but tokens.
TokenRuns read_raw(FileBytes file, TokenWidth width, std::string_view name);
// Whether every second u16 of the file's beginning is 0 or 1, as when u32 tokens are read as u16.
bool looks_like_raw_u32(FileBytes file);

}  // namespace rankine
