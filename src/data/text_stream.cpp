#include "data/text_stream.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace rankine {
namespace {

// Bytes at the end of `text` that `stop` begins with.
size_t begun(const std::string& text, const std::string& stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n)
    if (text.compare(text.size() - n, n, stop, 0, n) == 0) return n;
  return 0;
}

}  // namespace

TextStream::TextStream(const BpeTokenizer& tokenizer, std::vector<std::string> stops,
                       std::span<const int32_t> before)
    : decoder_(tokenizer, true), stops_(std::move(stops)) {
  for (const std::string& stop : stops_)
    require(!stop.empty(), ErrorKind::usage, "an empty text stops nothing");
  for (const int32_t id : before) decoder_.push(id);
}

std::string TextStream::push(int32_t id) {
  if (stopped_) return "";
  held_ += decoder_.push(id);
  size_t end = std::string::npos, kept = 0;
  for (const std::string& stop : stops_) {
    end = std::min(end, held_.find(stop));
    kept = std::max(kept, begun(held_, stop));
  }
  stopped_ = end != std::string::npos;
  const size_t certain = stopped_ ? end : held_.size() - kept;
  std::string out = held_.substr(0, certain);
  held_ = stopped_ ? "" : held_.substr(certain);
  return out;
}

std::string TextStream::finish() {
  return std::exchange(held_, {});
}

}  // namespace rankine
