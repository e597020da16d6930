#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// JSON lines: one object a line. Strict: what is no JSON object with the wanted fields, each once
// and a string, is a bad line with its reason.
namespace rankine {

struct LineFault {
  uint64_t line = 0;  // of the piece, from 0
  std::string reason;
};

// What a piece of whole lines held; the faults are the first few of `bad`.
struct LineCounts {
  uint64_t lines = 0, blank = 0, bad = 0, replaced = 0;  // replaced: ill-formed UTF-8
  std::vector<LineFault> faults;
};

// One for each thread.
class JsonLines {
 public:
  JsonLines();
  JsonLines(JsonLines&&) noexcept;
  ~JsonLines();

  // Calls on_text(the text of `field`) for each good line of `piece`; the text is valid UTF-8 and
  // lives until the call ends.
  void read_field(std::string_view piece, const std::string& field, LineCounts& counts,
                  const std::function<void(std::string_view)>& on_text);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace rankine
