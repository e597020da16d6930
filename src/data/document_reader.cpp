#include "data/document_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace rankine {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

bool is_letter_or_digit(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
}

// The last place at which a line ends behind a letter or digit, or 0.
size_t last_line_cut(std::string_view text) {
  for (size_t end = text.rfind('\n'); end != std::string_view::npos && end > 0;
       end = text.rfind('\n', end - 1)) {
    const size_t at = text[end - 1] == '\r' ? end - 1 : end;
    if (at > 0 && is_letter_or_digit(text[at - 1])) return at;
  }
  return 0;
}

// The last place not behind `most` that is not within a UTF-8 character.
size_t character_cut(std::string_view text, size_t most) {
  size_t at = most;
  while (at > most - 4 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

TextReader::TextReader(std::vector<DataFile> files, PieceSizes sizes)
    : files_(std::move(files)), sizes_(sizes) {
  for (const DataFile& file : files_) total_ += File::open_read(file.path).size();
}

// Whether at least so many bytes are pending afterwards.
bool TextReader::fill(uint64_t bytes) {
  size_t filled = pending_.size();
  if (filled < bytes && !stream_ended_) {
    pending_.resize(bytes);
    while (filled < bytes && !stream_ended_) {
      const size_t got = stream_->read(pending_.data() + filled, bytes - filled);
      stream_ended_ = got == 0;
      filled += got;
    }
    pending_.resize(filled);
  }
  return filled >= bytes;
}

void TextReader::open_file() {
  if (stream_ != nullptr) bytes_before_ += File::open_read(files_[next_file_ - 1].path).size();
  const DataFile& file = files_[next_file_++];
  stream_ = open_stream(file.path, file.compression, file.max_expansion);
  stream_ended_ = false;
  file_begins_ = true;
  fill(byte_order_mark.size());
  if (pending_.starts_with(byte_order_mark)) pending_.erase(0, byte_order_mark.size());
  if (!fill(1)) ++empty_files_;
}

uint64_t TextReader::bytes_read() const {
  return bytes_before_ + (stream_ != nullptr ? stream_->position() : 0);
}

bool TextReader::next(TextPiece& piece) {
  while (!fill(1)) {
    if (next_file_ == files_.size()) return false;
    open_file();
  }
  piece.file = static_cast<uint32_t>(next_file_ - 1);
  piece.is_lines = files_[piece.file].is_lines();
  piece.is_forced = false;
  piece.begins = std::exchange(file_begins_, false);
  if (piece.is_lines)
    take_lines(piece);
  else
    take_text(piece);
  piece.ends = pending_.empty() && stream_ended_;
  piece.bytes_read = bytes_read();
  return true;
}

void TextReader::take(TextPiece& piece, size_t bytes) {
  piece.bytes.assign(pending_, 0, bytes);
  pending_.erase(0, bytes);
}

void TextReader::take_text(TextPiece& piece) {
  uint64_t wanted = sizes_.cuts_at_lines ? std::min(sizes_.usual, sizes_.most) : sizes_.most;
  // One byte more tells whether the document goes on.
  while (fill(wanted + 1)) {
    const std::string_view text(pending_);
    if (const size_t cut = last_line_cut(text); cut > 0) {
      piece.is_forced = !sizes_.cuts_at_lines;
      return take(piece, cut);
    }
    if (wanted == sizes_.most) {
      piece.is_forced = true;
      return take(piece, character_cut(text, wanted));
    }
    wanted = std::min(2 * wanted, sizes_.most);
  }
  take(piece, pending_.size());
}

void TextReader::take_lines(TextPiece& piece) {
  uint64_t wanted = sizes_.usual;
  while (fill(wanted + 1)) {
    if (const size_t end = pending_.rfind('\n'); end != std::string::npos)
      return take(piece, end + 1);
    require(
        wanted < sizes_.longest_line, ErrorKind::data,
        "'{}' has a line of more than {} MiB; is it JSON lines? Text of that length goes into a "
        "file of its own",
        files_[piece.file].path.string(), sizes_.longest_line >> 20);
    wanted = std::min(2 * wanted, sizes_.longest_line);
  }
  take(piece, pending_.size());
}

}  // namespace rankine
