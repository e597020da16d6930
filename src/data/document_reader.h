#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/data_files.h"

// Text files as pieces of bounded size, in order: whole JSON lines, or parts of a document.
namespace rankine {

struct TextPiece {
  uint32_t file = 0;  // index
  bool is_lines = false;
  bool begins = true, ends = true;  // the document, of text
  bool is_forced = false;           // the cut behind it may change tokens
  uint64_t bytes_read = 0;          // of all files up to its end, as they lie on disk
  std::string bytes;
};

struct PieceSizes {
  uint64_t usual = uint64_t{1} << 20;  // pieces are at least this long, if there is so much
  uint64_t most = uint64_t{64} << 20;  // a document is cut wherever a character ends beyond this
  uint64_t longest_line = uint64_t{256} << 20;  // of JSON lines
  // Documents are cut where a line ends behind a letter or digit; else only when they exceed
  // `most`.
  bool cuts_at_lines = true;
};

class TextReader {
 public:
  explicit TextReader(std::vector<DataFile> files, PieceSizes sizes = {});

  // The next piece, false at the end. Empty files give none. A byte order mark is dropped.
  bool next(TextPiece& piece);
  uint64_t total_bytes() const { return total_; }  // of the files, as they lie on disk
  uint64_t empty_files() const { return empty_files_; }
  const std::vector<DataFile>& files() const { return files_; }

 private:
  uint64_t bytes_read() const;
  bool fill(uint64_t bytes);
  void open_file();
  void take(TextPiece& piece, size_t bytes);
  void take_text(TextPiece& piece);
  void take_lines(TextPiece& piece);

  std::vector<DataFile> files_;
  PieceSizes sizes_;
  size_t next_file_ = 0;
  std::unique_ptr<ByteStream> stream_;
  std::string pending_;  // read and not given out
  bool stream_ended_ = true, file_begins_ = true;
  uint64_t total_ = 0, bytes_before_ = 0, empty_files_ = 0;
};

}  // namespace rankine
