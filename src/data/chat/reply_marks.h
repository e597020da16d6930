#pragma once
#include <string>
#include <vector>

#include "data/chat/chat_template.h"

// Where replies begin and end in a rendered conversation, learned from the renderings themselves
// and not from a table of families.
namespace rankine {

// What a template puts around a reply, from conversations made to find it out.
struct ReplyMarks {
  std::string header;  // asks for a reply: "<|im_start|>assistant\n"; "" where nothing does
  std::string before;  // between that and what is said, as a space
  std::string end;     // behind what is said, up to and with the token that ends it; "" for none
  int32_t end_token = -1;  // that token
  std::string
      stop;  // text behind a reply that shows that the model speaks for the user; "" for none
};
ReplyMarks reply_marks(const ChatTemplate& chat, const BpeTokenizer& tokenizer);

// Half-open ranges of bytes of `text` that are learned: the template's generation blocks where it
// has them, otherwise the assistant's messages, each from where a prompt for it would end to the
// mark that ends it. Messages that the data exclude are left out. Error{data} where a reply cannot
// be told from the rest.
struct TextRange {
  size_t begin = 0, end = 0;
};
std::vector<TextRange> find_replies(const Conversation& conversation, const MarkedText& text,
                                    const ChatTemplate& chat, const ReplyMarks& marks);

}  // namespace rankine
