#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "data/json_lines.h"
#include "data/utf8_text.h"

// Any bytes as JSON lines: every line is blank, bad, or gives one text, which is valid UTF-8.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static rankine::JsonLines lines;
  rankine::LineCounts counts;
  uint64_t texts = 0, replaced = 0;
  std::string buffer;
  lines.read_field({reinterpret_cast<const char*>(data), size}, "a", counts,
                   [&](std::string_view text) {
                     ++texts;
                     rankine::valid_utf8(text, buffer, replaced);
                   });
  if (texts + counts.bad + counts.blank != counts.lines || replaced != 0) __builtin_trap();
  return 0;
}
