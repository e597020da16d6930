#include "data/token_source.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/byte_tokenizer.h"

namespace rankine {
namespace {

constexpr uint64_t small_file_bytes = 64 * 1024;
constexpr uint64_t looked_at_bytes = 64 * 1024;  // for NUL bytes
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr uint8_t end_of_text_u16[2] = {end_of_text_byte_token & 0xFF, end_of_text_byte_token >> 8};

template <class T>
T stored_token(const uint8_t* data, uint64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void widen(const uint8_t* data, uint64_t count, uint32_t mask, int32_t* out) {
  for (uint64_t i = 0; i < count; ++i)
    out[i] = static_cast<int32_t>(stored_token<T>(data, i) & mask);
}

template <class T>
uint32_t largest(const uint8_t* data, uint64_t count, uint32_t mask) {
  uint32_t most = 0;
  for (uint64_t i = 0; i < count; ++i) most = std::max(most, stored_token<T>(data, i) & mask);
  return most;
}

uint32_t largest(const uint8_t* data, uint64_t count, TokenWidth width, uint32_t mask) {
  if (width == TokenWidth::u8) return largest<uint8_t>(data, count, mask);
  if (width == TokenWidth::u16) return largest<uint16_t>(data, count, mask);
  return largest<uint32_t>(data, count, mask);
}

uint32_t one_token(const uint8_t* data, uint64_t index, TokenWidth width, uint32_t mask) {
  return largest(data + index * static_cast<uint64_t>(width), 1, width, mask);
}

}  // namespace

// Files worth one common warning.
struct TokenData::Oddities {
  std::vector<std::filesystem::path> empty, nul, wide;

  static void describe(const std::vector<std::filesystem::path>& files, std::string_view what,
                       std::vector<std::string>& out) {
    if (files.empty()) return;
    const std::string more =
        files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : std::string();
    out.push_back(fmt::format("'{}'{}: {}", files[0].string(), more, what));
  }
};

bool readable_as_bytes(const std::vector<DataFile>& files) {
  return std::all_of(files.begin(), files.end(), [](const DataFile& file) {
    return file.format == DataFormat::text && file.compression == Compression::none;
  });
}

TokenData TokenData::open(const std::vector<DataFile>& files) {
  expect(!files.empty(), "there are files");
  TokenData out;
  Oddities oddities;
  out.is_bytes_ = files.front().holds_text();
  expect(!out.is_bytes_ || readable_as_bytes(files), "text that can be read as bytes");
  for (const DataFile& file : files) {
    if (out.is_bytes_)
      out.add_text(file.path, oddities);
    else
      out.add_tokens(file, oddities);
  }
  Oddities::describe(oddities.empty, "empty, left out", out.warnings_);
  Oddities::describe(oddities.nul, "NUL bytes in text; is it a binary file?", out.warnings_);
  Oddities::describe(oddities.wide,
                     "every second 16-bit token is 0 or 1; are these raw-u32 tokens?",
                     out.warnings_);
  require(out.count_ > 0, ErrorKind::data, "'{}': there are no tokens in the data",
          files.front().path.string());
  return out;
}

int32_t TokenData::end_token() const {
  if (is_bytes_) return end_of_text_byte_token;
  return facts_ ? facts_->end_token : -1;
}

FileBytes TokenData::load(const std::filesystem::path& path) {
  files_.push_back(path);
  const File file = File::open_read(path);
  if (const uint64_t bytes = file.size(); bytes <= small_file_bytes) {
    std::vector<uint8_t>& contents = small_files_.emplace_back(bytes);
    file.read(contents.data(), bytes, 0);
    return contents;
  }
  const MappedFile& mapped = maps_.emplace_back(path);
  return {mapped.data(), mapped.size()};
}

void TokenData::add_text(const std::filesystem::path& path, Oddities& oddities) {
  const FileBytes bytes = load(path);
  const bool marked =
      bytes.size() >= byte_order_mark.size() &&
      std::memcmp(bytes.data(), byte_order_mark.data(), byte_order_mark.size()) == 0;
  const FileBytes text = bytes.subspan(marked ? byte_order_mark.size() : 0);
  if (text.empty()) {
    oddities.empty.push_back(path);
    return;
  }
  if (std::memchr(text.data(), 0, std::min<uint64_t>(text.size(), looked_at_bytes)) != nullptr)
    oddities.nul.push_back(path);
  if (count_ > 0) add_segment(end_of_text_u16, 1, TokenWidth::u16, 0);
  add_segment(text.data(), text.size(), TokenWidth::u8, bytes.size() - text.size());
}

TokenRuns TokenData::read_own(FileBytes bytes, const std::string& name) {
  TokenFile file = read_token_file(bytes, name);
  const TokenFileFacts& facts = file.facts;
  require(!facts_ ||
              (facts_->tokenizer_hash == facts.tokenizer_hash && facts_->samples == facts.samples),
          ErrorKind::data,
          "'{}' was made with another tokenizer than '{}', or one of the two holds samples of "
          "instructions; train on files of one kind",
          name, files_.front().string());
  for (size_t begin = 0; begin < facts.notes.size();) {
    const size_t end = std::min(facts.notes.find('\n', begin), facts.notes.size());
    warnings_.push_back(facts.notes.substr(begin, end - begin));
    begin = end + 1;
  }
  const size_t blocks = file.block_checksums.size();
  if (blocks == 0 && facts.tokens > 0)
    warnings_.push_back(
        fmt::format("'{}': version 1 of token files has no checksums of its tokens, so damage to "
                    "them is not noticed; tokenize the text again",
                    name));
  if (blocks > 0)
    blocks_.push_back(
        {std::move(file.block_checksums), std::make_unique<std::atomic<uint8_t>[]>(blocks)});
  if (!facts_) facts_ = std::move(file.facts);
  return std::move(file.runs);
}

TokenRuns TokenData::read_runs(const DataFile& file, FileBytes& bytes, Oddities& oddities) {
  const std::string name = file.path.string();
  if (file.format == DataFormat::megatron) {
    const MappedFile index(megatron_index(file.path));
    bytes = load(megatron_bin(file.path));
    return read_megatron_index({index.data(), index.size()}, bytes.size(),
                               megatron_index(file.path).string());
  }
  bytes = load(file.path);
  switch (file.format) {
    case DataFormat::tokens:
      return read_own(bytes, name);
    case DataFormat::llmc:
      return read_llmc(bytes, name);
    case DataFormat::raw_u16:
      if (looks_like_raw_u32(bytes)) oddities.wide.push_back(file.path);
      return read_raw(bytes, TokenWidth::u16, name);
    default:
      expect(file.format == DataFormat::raw_u32, "a format of tokens");
      return read_raw(bytes, TokenWidth::u32, name);
  }
}

void TokenData::add_tokens(const DataFile& file, Oddities& oddities) {
  FileBytes bytes;
  require(files_.empty() || facts_.has_value() == (file.format == DataFormat::tokens),
          ErrorKind::data,
          "'{}' and '{}': one of the two does not say which tokenizer made it; train on files of "
          "one kind",
          files_.empty() ? "" : files_.front().string(), file.path.string());
  const size_t known = blocks_.size();
  const TokenRuns runs = read_runs(file, bytes, oddities);
  if (runs.runs.empty()) oddities.empty.push_back(file.path);
  uint64_t place = 0;
  for (const TokenRun& run : runs.runs) {
    add_segment(bytes.data() + run.offset, run.count, runs.width, place);
    if (blocks_.size() > known) segments_.back().blocks = static_cast<int32_t>(known);
    place += run.count;
  }
}

void TokenData::add_segment(const uint8_t* data, uint64_t count, TokenWidth width, uint64_t place) {
  const auto file = static_cast<uint32_t>(files_.size() - 1);
  segments_.push_back({count_, data, count, width, file, place, -1});
  count_ += count;
}

// Compares the blocks that the tokens lie in with their checksums, unless that was done.
void TokenData::check_blocks(const Segment& segment, uint64_t skipped, uint64_t taken) const {
  if (segment.blocks < 0) return;
  const Blocks& blocks = blocks_[static_cast<size_t>(segment.blocks)];
  const auto width = static_cast<uint64_t>(segment.width);
  const uint64_t last = ((skipped + taken) * width - 1) / token_block_bytes;
  for (uint64_t i = skipped * width / token_block_bytes; i <= last; ++i) {
    if (blocks.seen[i].load(std::memory_order_relaxed) != 0) continue;
    const uint64_t begin = i * token_block_bytes;
    const uint64_t bytes = std::min(token_block_bytes, segment.bytes() - begin);
    const uint64_t checksum = token_block_checksum({segment.data + begin, bytes});
    require(
        checksum == blocks.checksums[i], ErrorKind::data,
        "'{}' is damaged: tokens {} to {} have the checksum {:016x}, not {:016x}; remove it and "
        "make it again from the text",
        files_[segment.file].string(), begin / width, (begin + bytes) / width - 1, checksum,
        blocks.checksums[i]);
    blocks.seen[i].store(1, std::memory_order_relaxed);
  }
}

uint64_t TokenData::contents_hash() const {
  std::vector<uint64_t> sums;
  for (const Segment& segment : segments_) {
    sums.push_back(segment.count);
    sums.push_back(static_cast<uint64_t>(segment.width));
    if (segment.blocks >= 0) {
      const std::vector<uint64_t>& own = blocks_[static_cast<size_t>(segment.blocks)].checksums;
      sums.insert(sums.end(), own.begin(), own.end());
      continue;
    }
    for (uint64_t at = 0; at < segment.bytes(); at += token_block_bytes)
      sums.push_back(token_block_checksum(
          {segment.data + at, std::min(token_block_bytes, segment.bytes() - at)}));
  }
  return token_block_checksum(
      {reinterpret_cast<const uint8_t*>(sums.data()), sums.size() * sizeof(uint64_t)});
}

// Calls visit(segment, its first wanted token, how many) for the segments of a range in order, of
// long ones again and again, so that what was compared with its checksum is still in memory.
template <class Visit>
void TokenData::visit(uint64_t first, uint64_t count, Visit&& visit) const {
  expect(first <= count_ && count <= count_ - first, "a token range within the corpus");
  auto segment = std::upper_bound(segments_.begin(), segments_.end(), first,
                                  [](uint64_t at, const Segment& s) { return at < s.first; });
  if (segment != segments_.begin()) --segment;
  constexpr uint64_t most = 1 << 20;
  while (count > 0) {
    const uint64_t skipped = first - segment->first;
    const uint64_t taken = std::min({count, segment->count - skipped, most});
    if (taken > 0) {
      check_blocks(*segment, skipped, taken);
      visit(*segment, skipped, taken);
    }
    first += taken;
    count -= taken;
    if (first == segment->first + segment->count) ++segment;
  }
}

void TokenData::copy(uint64_t first, uint64_t count, int32_t* out) const {
  copy_masked(first, count, id_mask(), out);
}

void TokenData::copy_marked(uint64_t first, uint64_t count, uint32_t* out) const {
  copy_masked(first, count, UINT32_MAX, reinterpret_cast<int32_t*>(out));
}

void TokenData::copy_masked(uint64_t first, uint64_t count, uint32_t mask, int32_t* out) const {
  visit(first, count, [&](const Segment& segment, uint64_t skipped, uint64_t taken) {
    const uint8_t* data = segment.data + skipped * static_cast<uint64_t>(segment.width);
    switch (segment.width) {
      case TokenWidth::u8:
        widen<uint8_t>(data, taken, mask, out);
        break;
      case TokenWidth::u16:
        widen<uint16_t>(data, taken, mask, out);
        break;
      case TokenWidth::u32:
        widen<uint32_t>(data, taken, mask, out);
        break;
    }
    out += taken;
  });
}

uint32_t TokenData::largest_id(uint64_t first, uint64_t count) const {
  uint32_t most = 0;
  visit(first, count, [&](const Segment& segment, uint64_t skipped, uint64_t taken) {
    const uint8_t* data = segment.data + skipped * static_cast<uint64_t>(segment.width);
    most = std::max(most, largest(data, taken, segment.width, id_mask()));
  });
  return most;
}

void TokenData::check_vocabulary(int64_t vocabulary, uint64_t first, uint64_t count) const {
  require(!is_bytes_ || vocabulary >= byte_vocabulary, ErrorKind::data,
          "text as bytes needs a vocabulary of at least {}; the model has {}", byte_vocabulary,
          vocabulary);
  constexpr uint64_t chunk = 1 << 16;
  visit(first, count, [&](const Segment& segment, uint64_t skipped, uint64_t taken) {
    const auto bits = 8 * static_cast<uint64_t>(segment.width);
    if (vocabulary >= int64_t{1} << bits) return;
    for (uint64_t done = 0; done < taken; done += chunk) {
      const uint64_t at = skipped + done, part = std::min(chunk, taken - done);
      const uint8_t* data = segment.data + at * static_cast<uint64_t>(segment.width);
      if (static_cast<int64_t>(largest(data, part, segment.width, id_mask())) < vocabulary)
        continue;
      uint64_t i = 0;
      while (static_cast<int64_t>(one_token(data, i, segment.width, id_mask())) < vocabulary) ++i;
      fail(
          ErrorKind::data,
          "'{}': token {} has id {}, but the vocabulary has {}; is it the data for this model, and "
          "is --data-format right?",
          files_[segment.file].string(), segment.place + at + i,
          one_token(data, i, segment.width, id_mask()), vocabulary);
    }
  });
}

}  // namespace rankine
