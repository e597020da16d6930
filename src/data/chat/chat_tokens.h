#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/chat/reply_marks.h"

// The ids of conversations. Rule: only what a template writes becomes an added token; what people
// write is text, whatever it says.
namespace rankine {

struct ChatTokens {
  TokenIds ids;
  std::vector<bool> is_reply;  // of each: whether it is learned
};

// Appends the ids of `text`. A range of `replies` begins at a token, since a model writes it behind
// the others; what stands on both sides of the border meets as in one text where that allows it.
void encode_marked(const MarkedText& text, const std::vector<TextRange>& replies,
                   const BpeTokenizer& tokenizer, Encoder& encoder, ChatTokens& out);

// Encodes conversation after conversation. One for each thread; template and tokenizer must outlive
// it.
class ChatEncoder {
 public:
  // Error{usage} when the tokenizer lacks a token that the template must have.
  ChatEncoder(const ChatTemplate& chat, const BpeTokenizer& tokenizer);

  // With `for_reply` up to where the assistant's next text begins. Errors as ChatTemplate::render.
  ChatTokens encode(const Conversation& conversation, bool for_reply);
  const ReplyMarks& marks() const { return marks_; }
  // How many bytes of a reply's first text are white space of the template's.
  size_t reply_begins(std::string_view text) const;

 private:
  const ChatTemplate& chat_;
  const BpeTokenizer& tokenizer_;
  Encoder encoder_;
  ReplyMarks marks_;
};

}  // namespace rankine
