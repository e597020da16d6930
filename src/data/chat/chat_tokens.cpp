#include "data/chat/chat_tokens.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {
namespace {

// Whether all of [begin, end) is the template's own text. Asked for in ascending order.
class OwnText {
 public:
  explicit OwnText(const MarkedText& text) : spans_(text.spans()) {}

  bool covers(size_t begin, size_t end) {
    while (span_ < spans_.size() && at_ + spans_[span_].bytes <= begin)
      at_ += spans_[span_++].bytes;
    size_t reach = at_;
    for (size_t i = span_; i < spans_.size() && reach < end; ++i) {
      if (spans_[i].origin != 0) return false;
      reach += spans_[i].bytes;
    }
    return true;
  }

 private:
  const std::vector<TextSpan>& spans_;
  size_t span_ = 0, at_ = 0;
};

// Text between two added tokens, encoded section by section where what is learned begins or ends.
class SectionEncoder {
 public:
  SectionEncoder(Encoder& encoder, ChatTokens& out) : encoder_(encoder), out_(out) {}

  void begin(PieceStart start) {
    run_.clear();
    known_.clear();
    start_ = start;
  }

  void add(std::string_view section, bool is_reply) {
    run_ += section;
    TokenIds ids;
    encoder_.encode(run_, {.start = start_}, ids);
    const bool meets =
        ids.size() >= known_.size() && std::equal(known_.begin(), known_.end(), ids.begin());
    if (!meets) {  // a token would lie on both sides of the border
      begin(PieceStart::within);
      run_ = section;
      ids.clear();
      encoder_.encode(run_, {.start = start_}, ids);
    }
    out_.ids.insert(out_.ids.end(), ids.begin() + std::ssize(known_), ids.end());
    out_.is_reply.resize(out_.ids.size(), is_reply);
    known_ = std::move(ids);
  }

 private:
  Encoder& encoder_;
  ChatTokens& out_;
  std::string run_;  // text since the last added token, as far as it was encoded as one
  TokenIds known_;   // its ids
  PieceStart start_ = PieceStart::text;
};

}  // namespace

void encode_marked(const MarkedText& text, const std::vector<TextRange>& replies,
                   const BpeTokenizer& tokenizer, Encoder& encoder, ChatTokens& out) {
  const std::string_view view = text.view();
  OwnText own(text);
  SectionEncoder sections(encoder, out);
  sections.begin(PieceStart::text);
  size_t reply = 0;  // the first that ends behind where we are
  const auto is_reply = [&](size_t at) {
    while (reply < replies.size() && replies[reply].end <= at) ++reply;
    return reply < replies.size() && replies[reply].begin <= at;
  };
  const auto add_text = [&](std::string_view piece) {
    size_t at = static_cast<size_t>(piece.data() - view.data());
    const size_t end = at + piece.size();
    while (at < end) {
      const bool learned = is_reply(at);
      size_t next = end;
      if (reply < replies.size())
        next = std::min(end, learned ? replies[reply].end : replies[reply].begin);
      sections.add(view.substr(at, next - at), learned);
      at = next;
    }
  };
  tokenizer.all_added().split_where(
      view,
      [&](const AddedToken& token, size_t begin, size_t end) {
        return !token.white_space && own.covers(begin, end);
      },
      add_text,
      [&](const AddedToken& token, size_t begin) {
        out.ids.push_back(token.id);
        out.is_reply.push_back(is_reply(begin));
        sections.begin(PieceStart::later);
      });
}

ChatEncoder::ChatEncoder(const ChatTemplate& chat, const BpeTokenizer& tokenizer)
    : chat_(chat),
      tokenizer_(tokenizer),
      encoder_(tokenizer),
      marks_(reply_marks(chat, tokenizer)) {
  for (const std::string& token : chat.required_tokens())
    require(tokenizer.added_id(token) >= 0, ErrorKind::usage,
            "the tokenizer has no token '{}', which this chat template is made of; choose another "
            "with --chat-template, 'plain' for a model that was not trained to chat",
            token);
}

ChatTokens ChatEncoder::encode(const Conversation& conversation, bool for_reply) {
  const MarkedText text = chat_.render(conversation, for_reply);
  const std::vector<TextRange> replies =
      for_reply ? std::vector<TextRange>() : find_replies(conversation, text, chat_, marks_);
  ChatTokens out;
  encode_marked(text, replies, tokenizer_, encoder_, out);
  return out;
}

size_t ChatEncoder::reply_begins(std::string_view text) const {
  const std::string& before = marks_.before;
  const bool blank = before.find_first_not_of(" \t\r\n") == std::string::npos;
  return blank && text.starts_with(before) ? before.size() : 0;
}

}  // namespace rankine
