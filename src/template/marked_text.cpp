#include "template/marked_text.h"

#include <algorithm>

#include "base/error.h"
#include "template/text_units.h"

namespace rankine {

MarkedText::MarkedText(std::string text, uint32_t origin) : text_(std::move(text)) {
  if (!text_.empty()) spans_.push_back({text_.size(), origin, false});
}

TextSpan MarkedText::span_at(size_t at) const {
  return MarkedTextReader(*this).at(at);
}

uint32_t MarkedText::first_origin() const {
  for (const TextSpan& span : spans_)
    if (span.origin != 0) return span.origin;
  return 0;
}

void MarkedText::add_span(const TextSpan& span) {
  if (span.bytes == 0) return;
  if (!spans_.empty() && spans_.back().origin == span.origin &&
      spans_.back().generated == span.generated)
    spans_.back().bytes += span.bytes;
  else
    spans_.push_back(span);
}

void MarkedText::append(const MarkedText& other) {
  const size_t count = other.spans_.size();  // `other` may be this text
  text_.append(std::string_view(other.text_));
  for (size_t i = 0; i < count; ++i) add_span(TextSpan(other.spans_[i]));
}

void MarkedText::append(std::string_view text, uint32_t origin, bool generated) {
  text_.append(text);
  add_span({text.size(), origin, generated});
}

void MarkedText::mark_generated() {
  std::vector<TextSpan> before;
  before.swap(spans_);
  for (const TextSpan& span : before) add_span({span.bytes, span.origin, true});
}

MarkedText MarkedText::slice(size_t begin, size_t bytes) const {
  MarkedText part;
  MarkedTextReader(*this).copy(begin, begin + bytes, part);
  return part;
}

void MarkedTextReader::seek(size_t at) {
  while (span_ < text_.spans_.size() && at >= span_begin_ + text_.spans_[span_].bytes)
    span_begin_ += text_.spans_[span_++].bytes;
}

TextSpan MarkedTextReader::at(size_t at) {
  expect(at < text_.size(), "a byte outside the text");
  seek(at);
  return text_.spans_[span_];
}

void MarkedTextReader::copy(size_t begin, size_t end, MarkedText& into) {
  expect(begin <= end && end <= text_.size(), "a piece outside the text");
  if (begin == end) return;
  seek(begin);
  into.text_.append(text_.text_, begin, end - begin);
  for (size_t at = begin; at < end;) {
    seek(at);
    const TextSpan& span = text_.spans_[span_];
    const size_t stop = std::min(end, span_begin_ + span.bytes);
    into.add_span({stop - at, span.origin, span.generated});
    at = stop;
  }
}

void append_escaped(const MarkedText& text, const std::function<std::string(char32_t)>& escape,
                    MarkedText& into) {
  MarkedTextReader reader(text);
  size_t plain = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text.view(), at);
    const std::string escaped = escape(character.code);
    if (!escaped.empty()) {
      reader.copy(plain, at, into);
      const TextSpan span = reader.at(at);
      into.append(escaped, span.origin, span.generated);
      plain = at + character.bytes;
    }
    at += character.bytes;
  }
  reader.copy(plain, text.size(), into);
}

}  // namespace rankine
