#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/data_files.h"
#include "data/token_file.h"
#include "data/token_formats.h"

// A corpus as one sequence of tokens over all its files, read where it lies: files are mapped, so
// a corpus may be larger than memory.
//
// Text can be read so as bytes: a token is a byte value, and token 256 stands between documents. A
// file is a document; empty ones are left out, a UTF-8 byte order mark at its beginning is dropped,
// everything else (line ends as CR LF, NUL, "<|endoftext|>") stays as it is. For other tokenizers,
// JSON lines and compressed files a token file is made first. Token files are taken as they are,
// one after the other.
namespace rankine {

// Whether TokenData can read the files as they are, with text as bytes.
bool readable_as_bytes(const std::vector<DataFile>& files);

class TokenData {
 public:
  // Token files, or plain text as bytes. Error{data} when a file is damaged, when Rankine's token
  // files come from different tokenizers, or when nothing is left. Tokens of Rankine's own files
  // are compared with their checksums when first read, here and below: Error{data} with file and
  // place.
  static TokenData open(const std::vector<DataFile>& files);

  uint64_t count() const { return count_; }  // tokens
  bool has_samples() const { return facts_ && facts_->samples; }
  int32_t end_token() const;  // behind or between documents, -1 when it is not known
  bool is_bytes() const { return is_bytes_; }
  // What the first of Rankine's own token files says of its tokenizer; null without such files.
  const TokenFileFacts* facts() const { return facts_ ? &*facts_ : nullptr; }
  const std::vector<std::filesystem::path>& files() const { return files_; }
  // What a user may want to look at: NUL bytes in text, empty files, ....
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Changes with any token: by the checksums of Rankine's own files, of others by reading them all.
  uint64_t contents_hash() const;

  // Tokens [first, first + count) of the whole corpus; must lie within it.
  void copy(uint64_t first, uint64_t count, int32_t* out) const;
  // The same with the marks of samples (token_file.h).
  void copy_marked(uint64_t first, uint64_t count, uint32_t* out) const;
  // The largest of tokens [first, first + count), by reading them.
  uint32_t largest_id(uint64_t first, uint64_t count) const;
  // Reads tokens [first, first + count) and throws Error{data} with file and position when one is
  // not below `vocabulary`. Ranks can share the work; nothing is read when no token can be too
  // large.
  void check_vocabulary(int64_t vocabulary, uint64_t first, uint64_t count) const;
  void check_vocabulary(int64_t vocabulary) const { check_vocabulary(vocabulary, 0, count_); }

 private:
  struct Segment {
    uint64_t first;  // its first token's place in the corpus
    const uint8_t* data;
    uint64_t count;
    TokenWidth width;
    uint32_t file;
    uint64_t place;  // its first token's place in the file, in tokens
    int32_t blocks;  // its checksums' index, -1 without any
    uint64_t bytes() const { return count * static_cast<uint64_t>(width); }
  };
  struct Blocks {
    std::vector<uint64_t> checksums;
    std::unique_ptr<std::atomic<uint8_t>[]> seen;  // those that were right
  };
  struct Oddities;
  TokenData() = default;
  FileBytes load(const std::filesystem::path& path);
  void add_text(const std::filesystem::path& path, Oddities& oddities);
  void add_tokens(const DataFile& file, Oddities& oddities);
  TokenRuns read_runs(const DataFile& file, FileBytes& bytes, Oddities& oddities);
  TokenRuns read_own(FileBytes bytes, const std::string& name);
  void check_blocks(const Segment& segment, uint64_t skipped, uint64_t taken) const;
  void add_segment(const uint8_t* data, uint64_t count, TokenWidth width, uint64_t place);
  uint32_t id_mask() const { return has_samples() ? sample_id_mask : UINT32_MAX; }
  void copy_masked(uint64_t first, uint64_t count, uint32_t mask, int32_t* out) const;
  template <class Visit>
  void visit(uint64_t first, uint64_t count, Visit&& visit) const;

  std::vector<MappedFile> maps_;
  std::vector<std::vector<uint8_t>> small_files_;  // a system has room for some 65,000 maps only
  std::vector<std::filesystem::path> files_;
  std::vector<Segment> segments_;
  std::vector<Blocks> blocks_;
  std::vector<std::string> warnings_;
  uint64_t count_ = 0;
  bool is_bytes_ = false;
  std::optional<TokenFileFacts> facts_;
};

}  // namespace rankine
