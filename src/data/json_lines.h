#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/chat/conversation.h"

// JSON lines: one object a line. Strict: what is no JSON object with the wanted fields, each a
// string, is a bad line with its reason. Of a key given twice the last one counts, as with every
// common reader.
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
  // Likewise for each conversation; an Error{data} that on_conversation throws makes the line bad.
  void read_conversations(std::string_view piece, const ConversationFields& fields,
                          LineCounts& counts,
                          const std::function<void(const Conversation&)>& on_conversation);

 private:
  struct Parser;
  template <class OnLine>
  void read_lines(std::string_view piece, LineCounts& counts, OnLine&& on_line);
  std::unique_ptr<Parser> parser_;
};

}  // namespace rankine
