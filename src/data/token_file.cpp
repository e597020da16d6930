#include "data/token_file.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace rankine {
namespace {

constexpr std::string_view magic = "RKTOKENS";
constexpr uint64_t header_bytes = 128;
constexpr uint32_t version = 2, version_without_blocks = 1;
constexpr uint32_t samples_flag = 1;
// A block's checksum is stored as text, so that all behind the tokens is, as in version 1.
constexpr uint64_t checksum_digits = 16;

// As it lies in the file, little-endian; unused bytes up to header_bytes are 0.
struct Header {
  char magic[8];
  uint32_t version, width;
  uint64_t vocabulary, tokenizer_hash, tokens, documents;
  uint64_t json_bytes, config_bytes, notes_bytes;
  uint32_t flags;
  int32_t end_token;
  uint64_t tail_hash;  // XXH3 of what follows the tokens, the blocks' checksums last
  uint64_t hash;       // XXH3 of the header up to here
};
static_assert(sizeof(Header) == 96 && sizeof(Header) <= header_bytes);

uint64_t hash_of(const Header& header) {
  return XXH3_64bits(&header, offsetof(Header, hash));
}

template <class... Args>
void check(bool ok, std::string_view name, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok)
    fail(ErrorKind::data, "'{}': {}", name, fmt::format(format, std::forward<Args>(args)...));
}

uint64_t checksum_bytes(const Header& h) {
  if (h.version == version_without_blocks) return 0;
  return (h.tokens * h.width + token_block_bytes - 1) / token_block_bytes * checksum_digits;
}

void check_header(const Header& h, uint64_t file_bytes, std::string_view name) {
  check(h.version == version || h.version == version_without_blocks, name,
        "version {} of Rankine's token files; this program reads {} and {}", h.version,
        version_without_blocks, version);
  check(hash_of(h) == h.hash, name, "the header's checksum is wrong; the file is damaged");
  check(h.width == 2 || h.width == 4, name, "tokens of {} bytes; 2 and 4 are supported", h.width);
  check((h.flags & ~samples_flag) == 0 && (h.flags == 0 || h.width == 4), name,
        "flags {:#x} with tokens of {} bytes are unknown", h.flags, h.width);
  check(h.vocabulary > 0 && h.vocabulary <= uint64_t{1} << 30, name,
        "a vocabulary of {} is not possible", h.vocabulary);
  // Each size is bounded on its own first, so that the sum cannot overflow.
  const uint64_t rest = file_bytes - header_bytes;
  const bool plausible = h.tokens <= rest / h.width && h.json_bytes <= rest &&
                         h.config_bytes <= rest && h.notes_bytes <= rest;
  check(plausible && h.tokens * h.width + h.json_bytes + h.config_bytes + h.notes_bytes +
                             checksum_bytes(h) ==
                         rest,
        name,
        "the header promises {} tokens of {} bytes, {} + {} + {} bytes of text and {} of "
        "checksums, but {} bytes follow; the file is cut short or damaged",
        h.tokens, h.width, h.json_bytes, h.config_bytes, h.notes_bytes,
        plausible ? checksum_bytes(h) : 0, rest);
}

uint64_t parse_checksum(std::string_view digits, std::string_view name) {
  uint64_t out = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
  check(fault == std::errc() && end == digits.data() + digits.size(), name,
        "a block's checksum is no number; the file is damaged");
  return out;
}

}  // namespace

TokenWidth token_width(int64_t vocabulary, bool samples) {
  return samples || vocabulary > int64_t{1} << 16 ? TokenWidth::u32 : TokenWidth::u16;
}

bool looks_like_token_file(FileBytes file) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

TokenFile read_token_file(FileBytes file, std::string_view name) {
  check(looks_like_token_file(file), name, "no token file of Rankine (it begins with RKTOKENS)");
  check(file.size() >= header_bytes, name, "{} bytes are less than the header of {}", file.size(),
        header_bytes);
  const FileBytes unused = file.subspan(sizeof(Header), header_bytes - sizeof(Header));
  check(std::ranges::all_of(unused, [](uint8_t byte) { return byte == 0; }), name,
        "unused bytes of the header are not 0; the file is damaged");
  Header h{};
  std::memcpy(&h, file.data(), sizeof(h));
  check_header(h, file.size(), name);
  const uint64_t tail_at = header_bytes + h.tokens * h.width;
  const FileBytes tail = file.subspan(tail_at);
  check(XXH3_64bits(tail.data(), tail.size()) == h.tail_hash, name,
        "the checksum of what follows the tokens is wrong; the file is damaged");
  const char* text = reinterpret_cast<const char*>(tail.data());
  TokenFile out;
  out.facts = {.width = static_cast<TokenWidth>(h.width),
               .vocabulary = static_cast<int64_t>(h.vocabulary),
               .tokenizer_hash = h.tokenizer_hash,
               .tokens = h.tokens,
               .documents = h.documents,
               .end_token = h.end_token,
               .samples = (h.flags & samples_flag) != 0,
               .tokenizer_json = {text, h.json_bytes},
               .tokenizer_config = {text + h.json_bytes, h.config_bytes},
               .notes = {text + h.json_bytes + h.config_bytes, h.notes_bytes}};
  const char* digits = text + tail.size() - checksum_bytes(h);
  for (uint64_t i = 0; i < checksum_bytes(h); i += checksum_digits)
    out.block_checksums.push_back(parse_checksum({digits + i, checksum_digits}, name));
  out.runs.width = out.facts.width;
  if (h.tokens > 0) out.runs.runs.push_back({header_bytes, h.tokens});
  return out;
}

uint64_t token_block_checksum(FileBytes block) {
  return XXH3_64bits(block.data(), block.size());
}

// Checksums of a stream of bytes, block by block.
class TokenFileWriter::Blocks {
 public:
  Blocks() { block_.reserve(token_block_bytes); }
  void add(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t some = std::min(bytes.size(), token_block_bytes - block_.size());
      block_.append(bytes.substr(0, some));
      bytes.remove_prefix(some);
      if (block_.size() == token_block_bytes) end_block();
    }
  }
  // All of them as they are stored.
  std::string finish() {
    if (!block_.empty()) end_block();
    return std::move(checksums_);
  }

 private:
  void end_block() {
    checksums_ += fmt::format("{:016x}", XXH3_64bits(block_.data(), block_.size()));
    block_.clear();
  }
  std::string block_, checksums_;
};

TokenFileWriter::TokenFileWriter(std::filesystem::path path, PendingFile::Existing existing)
    : file_(std::move(path), existing), at_(header_bytes), blocks_(std::make_unique<Blocks>()) {}

TokenFileWriter::~TokenFileWriter() = default;

void TokenFileWriter::append(std::string_view bytes) {
  file_.write(bytes.data(), bytes.size(), at_);
  at_ += bytes.size();
  blocks_->add(bytes);
}

void TokenFileWriter::finish(const TokenFileFacts& facts) {
  const auto width = static_cast<uint64_t>(facts.width);
  expect(at_ == header_bytes + facts.tokens * width, "all tokens were appended");
  const std::string tail =
      facts.tokenizer_json + facts.tokenizer_config + facts.notes + blocks_->finish();
  file_.write(tail.data(), tail.size(), at_);
  char bytes[header_bytes] = {};
  Header h{};
  std::memcpy(h.magic, magic.data(), magic.size());
  h.version = version;
  h.width = static_cast<uint32_t>(width);
  h.vocabulary = static_cast<uint64_t>(facts.vocabulary);
  h.tokenizer_hash = facts.tokenizer_hash;
  h.tokens = facts.tokens;
  h.documents = facts.documents;
  h.json_bytes = facts.tokenizer_json.size();
  h.config_bytes = facts.tokenizer_config.size();
  h.notes_bytes = facts.notes.size();
  h.end_token = facts.end_token;
  h.flags = facts.samples ? samples_flag : 0;
  h.tail_hash = XXH3_64bits(tail.data(), tail.size());
  h.hash = hash_of(h);
  std::memcpy(bytes, &h, sizeof(h));
  file_.write(bytes, header_bytes, 0);
  file_.commit();
}

}  // namespace rankine
