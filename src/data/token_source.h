#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/options.h"
#include "data/token_formats.h"

// A corpus as one sequence of tokens over all its files, read where it lies: files are mapped, so
// a corpus may be larger than memory.
//
// Text becomes bytes: a token is a byte value, and token 256 stands between documents, so the
// vocabulary is 257. A file is a document; empty ones are left out, a UTF-8 byte order mark at its
// beginning is dropped, everything else (line ends as CR LF, NUL, "<|endoftext|>") stays as it is.
// Token files are taken as they are, one after the other.
namespace rankine {

constexpr int32_t end_of_text_byte_token = 256;
constexpr int64_t byte_vocabulary = 257;

class TokenData {
 public:
  // Error{data} when a file is missing, not supported or damaged, or when nothing is left.
  static TokenData open(const DataOptions& options);

  uint64_t count() const { return count_; }  // tokens
  bool is_bytes() const { return is_bytes_; }
  const std::vector<std::filesystem::path>& files() const { return files_; }
  // What a user may want to look at: NUL bytes in text, empty files, ....
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Tokens [first, first + count) of the whole corpus; must lie within it.
  void copy(uint64_t first, uint64_t count, int32_t* out) const;
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
  };
  struct Oddities;
  TokenData() = default;
  FileBytes load(const std::filesystem::path& path);
  void add_text(const std::filesystem::path& path, Oddities& oddities);
  void add_tokens(const std::filesystem::path& path, DataFormat format, Oddities& oddities);
  void add_segment(const uint8_t* data, uint64_t count, TokenWidth width, uint64_t place);
  template <class Visit>
  void visit(uint64_t first, uint64_t count, Visit&& visit) const;

  std::vector<MappedFile> maps_;
  std::vector<std::vector<uint8_t>> small_files_;  // a system has room for some 65,000 maps only
  std::vector<std::filesystem::path> files_;
  std::vector<Segment> segments_;
  std::vector<std::string> warnings_;
  uint64_t count_ = 0;
  bool is_bytes_ = false;
};

}  // namespace rankine
