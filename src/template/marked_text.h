#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// Text whose characters remember where they come from. Rule: whatever is done to a text, a
// character that people wrote keeps their origin.
namespace rankine {

// A run of bytes with one history; never empty, and no two neighbours in a text are alike.
struct TextSpan {
  size_t bytes = 0;
  uint32_t origin = 0;     // 0: the template itself; k >= 1: what the caller numbered so
  bool generated = false;  // written inside a generation block
  bool operator==(const TextSpan&) const = default;
};

class MarkedText {
 public:
  MarkedText() = default;
  explicit MarkedText(std::string text, uint32_t origin = 0);

  const std::string& text() const { return text_; }
  std::string_view view() const { return text_; }
  // Together they cover text(), in its order.
  const std::vector<TextSpan>& spans() const { return spans_; }
  size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }
  // Of the byte at `at`, which lies in the text.
  TextSpan span_at(size_t at) const;
  // The first origin other than 0, or 0.
  uint32_t first_origin() const;

  void append(const MarkedText& other);
  void append(std::string_view text, uint32_t origin, bool generated = false);
  void reserve(size_t bytes) { text_.reserve(bytes); }
  // From now on all of it counts as written inside a generation block.
  void mark_generated();
  // `bytes` bytes from `begin` on, which lie in the text.
  MarkedText slice(size_t begin, size_t bytes) const;

 private:
  friend class MarkedTextReader;
  void add_span(const TextSpan& span);

  std::string text_;
  std::vector<TextSpan> spans_;
};

// Copies pieces of a text in ascending order, each in time of its own length.
class MarkedTextReader {
 public:
  explicit MarkedTextReader(const MarkedText& text) : text_(text) {}
  // Appends bytes [begin, end); `begin` is not before the last call's.
  void copy(size_t begin, size_t end, MarkedText& into);
  // The history of the byte at `at`, not before the last call's.
  TextSpan at(size_t at);

 private:
  void seek(size_t at);

  const MarkedText& text_;
  size_t span_ = 0;
  size_t span_begin_ = 0;
};

// Appends the text with escape(code) in the place of every character for which that is not empty;
// it keeps the character's history.
void append_escaped(const MarkedText& text, const std::function<std::string(char32_t)>& escape,
                    MarkedText& into);

}  // namespace rankine
