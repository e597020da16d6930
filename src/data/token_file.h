#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/token_formats.h"

// Rankine's own token file: a header with a checksum, the tokens of all documents, each with its
// end token behind it, then the tokenizer itself, so that the file is enough to train on, and a
// checksum of each block of tokens. Version 1 had none of the latter.
namespace rankine {

struct TokenFileFacts {
  TokenWidth width = TokenWidth::u16;
  int64_t vocabulary = 0;
  uint64_t tokenizer_hash = 0;
  uint64_t tokens = 0, documents = 0;
  int32_t end_token = -1;  // behind each document; -1: another one, or of samples
  bool samples = false;    // tokens carry the marks below; u32
  std::string tokenizer_json, tokenizer_config;
  std::string notes;  // what its maker had to say of the documents, a line each
};

// Bytes of tokens under one checksum: as many as the system reads ahead anyway.
constexpr uint64_t token_block_bytes = 64 * 1024;
uint64_t token_block_checksum(FileBytes block);  // XXH3

// Marks on the tokens of samples: the first of a sample, and those that are learned.
constexpr uint32_t sample_begin = uint32_t{1} << 31, sample_target = uint32_t{1} << 30;
constexpr uint32_t sample_id_mask = sample_target - 1;

// The narrowest width for a vocabulary.
TokenWidth token_width(int64_t vocabulary, bool samples);

bool looks_like_token_file(FileBytes file);
// Where the tokens lie, and what the header and the end of the file say. Faults throw Error{data}
// that begins with `name`.
struct TokenFile {
  TokenFileFacts facts;
  TokenRuns runs;
  std::vector<uint64_t> block_checksums;  // of the tokens; none of version 1
};
// Everything but the tokens is compared with its checksum.
TokenFile read_token_file(FileBytes file, std::string_view name);

// Writes one file, complete under its name or not at all.
class TokenFileWriter {
 public:
  explicit TokenFileWriter(std::filesystem::path path,
                           PendingFile::Existing existing = PendingFile::Existing::refused);
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;
  ~TokenFileWriter();

  // Whole tokens of the width that finish() will be told.
  void append(std::string_view bytes);
  // `facts.tokens` is what was appended. fsync and rename.
  void finish(const TokenFileFacts& facts);

 private:
  class Blocks;
  PendingFile file_;
  uint64_t at_;
  std::unique_ptr<Blocks> blocks_;
};

}  // namespace rankine
