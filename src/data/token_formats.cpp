#include "data/token_formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "base/error.h"

namespace rankine {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr int32_t llmc_gpt2_magic = 20240520, llmc_llama3_magic = 20240801;
constexpr uint64_t llmc_header_bytes = 256 * sizeof(int32_t);
constexpr std::string_view megatron_magic("MMIDIDX\0\0", 9);
constexpr uint64_t megatron_header_bytes = 9 + 8 + 1 + 8 + 8;

// Files give no alignment.
template <class T>
T value_at(FileBytes file, uint64_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

template <class... Args>
void check(bool ok, std::string_view name, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok)
    fail(ErrorKind::data, "'{}': {}", name, fmt::format(format, std::forward<Args>(args)...));
}

TokenWidth megatron_width(uint8_t code, std::string_view name) {
  constexpr std::array names{"none",  "uint8",   "int8",    "int16", "int32",
                             "int64", "float64", "float32", "uint16"};
  if (code == 4) return TokenWidth::u32;
  if (code == 8) return TokenWidth::u16;
  check(1 <= code && code < names.size(), name,
        "token type code {} is unknown; uint16 (8) and int32 (4) are supported", code);
  check(false, name, "tokens are stored as {}; uint16 and int32 are supported", names.at(code));
  return TokenWidth::u16;
}

// The places of the three arrays of a Megatron index.
struct MegatronLayout {
  uint64_t sequences, documents, lengths, pointers, document_index;
};

MegatronLayout megatron_layout(FileBytes index, std::string_view name) {
  MegatronLayout layout{};
  layout.sequences = value_at<uint64_t>(index, 18);
  layout.documents = value_at<uint64_t>(index, 26);
  const uint64_t rest = index.size() - megatron_header_bytes;
  // Each count is bounded on its own first, so that the sum cannot overflow.
  const bool plausible = layout.sequences <= rest / 12 && layout.documents <= rest / 8;
  const uint64_t needed = plausible ? layout.sequences * 12 + layout.documents * 8 : 0;
  check(plausible && needed <= rest, name,
        "the header promises {} sequences and {} document entries, more than its {} bytes hold; "
        "the file is cut short or damaged",
        layout.sequences, layout.documents, index.size());
  check(needed == rest, name,
        "{} bytes follow the index; multimodal indexes (with a mode for each sequence) are not "
        "supported",
        rest - needed);
  layout.lengths = megatron_header_bytes;
  layout.pointers = layout.lengths + 4 * layout.sequences;
  layout.document_index = layout.pointers + 8 * layout.sequences;
  return layout;
}

void check_documents(FileBytes index, const MegatronLayout& layout, std::string_view name) {
  int64_t last = 0;
  for (uint64_t i = 0; i < layout.documents; ++i) {
    const auto entry = value_at<int64_t>(index, layout.document_index + 8 * i);
    check(i == 0 ? entry == 0 : entry >= last, name,
          "document entry {} is {}; entries begin at 0 and never go down", i, entry);
    last = entry;
  }
  check(layout.documents > 0 && static_cast<uint64_t>(last) == layout.sequences, name,
        "the document index ends at sequence {} of {}", last, layout.sequences);
}

}  // namespace

bool looks_like_llmc(FileBytes file) {
  if (file.size() < 8) return false;
  const auto magic = value_at<int32_t>(file, 0);
  return magic == llmc_gpt2_magic || magic == llmc_llama3_magic;
}

TokenRuns read_llmc(FileBytes file, std::string_view name) {
  check(looks_like_llmc(file), name, "not a llm.c token file (magic 20240520 or 20240801)");
  const auto magic = value_at<int32_t>(file, 0), version = value_at<int32_t>(file, 4);
  const bool llama3 = magic == llmc_llama3_magic;
  check(version == (llama3 ? 7 : 1), name, "llm.c magic {} has version {}; version {} is supported",
        magic, version, llama3 ? 7 : 1);
  check(file.size() >= llmc_header_bytes, name, "{} bytes are less than the llm.c header of {}",
        file.size(), llmc_header_bytes);
  const TokenWidth width = llama3 ? TokenWidth::u32 : TokenWidth::u16;
  const auto token_bytes = static_cast<uint64_t>(width);
  const auto count = value_at<int32_t>(file, 8);
  const uint64_t rest = file.size() - llmc_header_bytes;
  check(count >= 0 && static_cast<uint64_t>(count) * token_bytes == rest, name,
        "the llm.c header promises {} tokens of {} bytes, but {} bytes follow; the file is cut "
        "short or damaged",
        count, token_bytes, rest);
  TokenRuns out{width, {}};
  if (count > 0) out.runs.push_back({llmc_header_bytes, static_cast<uint64_t>(count)});
  return out;
}

bool looks_like_megatron_index(FileBytes index) {
  return index.size() >= megatron_magic.size() &&
         std::memcmp(index.data(), megatron_magic.data(), megatron_magic.size()) == 0;
}

TokenRuns read_megatron_index(FileBytes index, uint64_t bin_bytes, std::string_view name) {
  check(looks_like_megatron_index(index), name, "not a Megatron index (it begins with MMIDIDX)");
  check(index.size() >= megatron_header_bytes, name,
        "{} bytes are less than the Megatron header of {}", index.size(), megatron_header_bytes);
  const auto version = value_at<uint64_t>(index, 9);
  check(version == 1, name, "Megatron index version {}; version 1 is supported", version);
  TokenRuns out{megatron_width(value_at<uint8_t>(index, 17), name), {}};
  const MegatronLayout layout = megatron_layout(index, name);
  check_documents(index, layout, name);

  const auto token_bytes = static_cast<uint64_t>(out.width);
  uint64_t run_end = 0;
  for (uint64_t i = 0; i < layout.sequences; ++i) {
    const auto length = value_at<int32_t>(index, layout.lengths + 4 * i);
    const auto pointer = value_at<int64_t>(index, layout.pointers + 8 * i);
    const auto offset = static_cast<uint64_t>(pointer);
    const uint64_t bytes = length < 0 ? 0 : static_cast<uint64_t>(length) * token_bytes;
    check(length >= 0 && pointer >= 0 && offset <= bin_bytes && bytes <= bin_bytes - offset, name,
          "sequence {} has {} tokens at byte {}, outside its .bin file of {} bytes", i, length,
          pointer, bin_bytes);
    if (length == 0) continue;
    if (!out.runs.empty() && run_end == offset)
      out.runs.back().count += static_cast<uint64_t>(length);
    else
      out.runs.push_back({offset, static_cast<uint64_t>(length)});
    run_end = offset + bytes;
  }
  return out;
}

TokenRuns read_raw(FileBytes file, TokenWidth width, std::string_view name) {
  const auto token_bytes = static_cast<uint64_t>(width);
  check(file.size() % token_bytes == 0, name, "{} bytes are no whole number of {}-byte tokens",
        file.size(), token_bytes);
  TokenRuns out{width, {}};
  if (!file.empty()) out.runs.push_back({0, file.size() / token_bytes});
  return out;
}

bool looks_like_raw_u32(FileBytes file) {
  constexpr uint64_t sample = 1024, least = 32;  // tokens of 4 bytes
  const uint64_t tokens = std::min<uint64_t>(file.size() / 4, sample);
  for (uint64_t i = 0; i < tokens; ++i)
    if (value_at<uint16_t>(file, 4 * i + 2) > 1) return false;
  return tokens >= least;
}

}  // namespace rankine
