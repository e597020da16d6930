#include "data/text_stream.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/utf8_text.h"

namespace rankine {
namespace {

// Bytes at the end of `text` that `stop` begins with.
size_t begun(const std::string& text, const std::string& stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n)
    if (text.compare(text.size() - n, n, stop, 0, n) == 0) return n;
  return 0;
}

size_t most_begun(const std::string& text, const std::vector<std::string>& stops) {
  size_t most = 0;
  for (const std::string& stop : stops) most = std::max(most, begun(text, stop));
  return most;
}

// Bytes of the longest stop text that `text` ends with.
size_t longest_end(const std::string& text, const std::vector<std::string>& stops) {
  size_t most = 0;
  for (const std::string& stop : stops)
    if (text.ends_with(stop)) most = std::max(most, stop.size());
  return most;
}

}  // namespace

void check_stop_text(const std::string& stop) {
  require(!stop.empty(), ErrorKind::usage, "an empty stop text stops nothing; leave it out");
  std::string valid;
  uint64_t replaced = 0;
  valid_utf8(stop, valid, replaced);
  require(replaced == 0, ErrorKind::usage,
          "the stop text '{}' is no UTF-8, and no text that is written would hold it", valid);
}

TextStream::TextStream(const BpeTokenizer& tokenizer, const std::vector<std::string>& stops,
                       std::span<const int32_t> before)
    : tokenizer_(tokenizer), decoder_(tokenizer, true) {
  for (const std::string& stop : stops) {
    check_stop_text(stop);
    (tokenizer.spells_special(stop) ? spelled_stops_ : plain_stops_).push_back(stop);
  }
  for (const int32_t id : before) decoder_.push(id);
}

// How many of the last bytes with special tokens are among those that are shown.
size_t TextStream::shown_in(size_t spelled_bytes) const {
  return static_cast<size_t>(
      std::count(spelled_shown_.end() - static_cast<std::ptrdiff_t>(spelled_bytes),
                 spelled_shown_.end(), true));
}

// Byte by byte: what ends the text is the same whether it came as one token or as many.
void TextStream::add(std::string_view text, bool is_shown) {
  for (size_t i = 0; i < text.size() && !stopped_; ++i) {
    if (is_shown) shown_ += text[i];
    if (!spelled_stops_.empty()) {
      spelled_ += text[i];
      spelled_shown_.push_back(is_shown);
    }
    find_end();
  }
}

void TextStream::find_end() {
  const size_t plain = longest_end(shown_, plain_stops_);
  const size_t spelled = longest_end(spelled_, spelled_stops_);
  if (plain == 0 && spelled == 0) return;
  stopped_ = true;
  shown_.resize(shown_.size() - std::max(plain, shown_in(spelled)));
}

// Bytes at the end of what is shown that a stop text may begin with.
size_t TextStream::held_bytes() {
  const size_t spelled = most_begun(spelled_, spelled_stops_);
  const size_t surplus = spelled_.size() - spelled;
  spelled_.erase(0, surplus);
  spelled_shown_.erase(spelled_shown_.begin(),
                       spelled_shown_.begin() + static_cast<std::ptrdiff_t>(surplus));
  return std::max(most_begun(shown_, plain_stops_), shown_in(spelled));
}

std::string TextStream::push(int32_t id) {
  if (stopped_) return "";
  const bool is_shown = !tokenizer_.is_special(id);
  add(is_shown ? decoder_.push(id) : std::string(tokenizer_.added_text(id)), is_shown);
  const size_t certain = shown_.size() - (stopped_ ? 0 : held_bytes());
  std::string out = shown_.substr(0, certain);
  shown_.erase(0, certain);
  return out;
}

std::string TextStream::finish() {
  if (!stopped_) unfinished_ = decoder_.finish();
  return std::exchange(shown_, {});
}

}  // namespace rankine
