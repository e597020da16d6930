#include "data/chat/reply_marks.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace rankine {
namespace {

constexpr uint32_t template_origin = 0;

// Texts that stand in no template and that no template changes.
const Conversation& asked() {
  static const Conversation out{{{"user", "Rq7x"}}};
  return out;
}
const Conversation& answered() {
  static const Conversation out{{{"user", "Rq7x"}, {"assistant", "Zk4w"}}};
  return out;
}
const Conversation& asked_again() {
  static const Conversation out{{{"user", "Rq7x"}, {"assistant", "Zk4w"}, {"user", "Hm9v"}}};
  return out;
}

// A rendering, or nothing where the template has no form for the conversation.
std::optional<MarkedText> try_render(const ChatTemplate& chat, const Conversation& conversation,
                                     bool for_reply) {
  try {
    return chat.render(conversation, for_reply);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// From the first character of an origin to behind its last.
std::optional<TextRange> extent(const MarkedText& text, uint32_t origin) {
  std::optional<TextRange> out;
  size_t at = 0;
  for (const TextSpan& span : text.spans()) {
    if (span.origin == origin) {
      if (!out) out = TextRange{at, at};
      out->end = at + span.bytes;
    }
    at += span.bytes;
  }
  return out;
}

// The template's own text from `at` up to what somebody wrote.
std::string_view own_text_from(const MarkedText& text, size_t at) {
  size_t begin = 0;
  for (const TextSpan& span : text.spans()) {
    const size_t end = begin + span.bytes;
    if (end > at && span.origin != template_origin)
      return text.view().substr(at, std::max(begin, at) - at);
    begin = end;
  }
  return text.view().substr(at);
}

std::string without_white_space_behind(std::string_view text) {
  return std::string(text.substr(0, text.find_last_not_of(" \t\r\n") + 1));
}

void find_end(std::string_view tail, const BpeTokenizer& tokenizer, ReplyMarks& out) {
  const auto found = tokenizer.first_added(tail);
  if (!found) {
    out.end = without_white_space_behind(tail);
    return;
  }
  out.end = tail.substr(0, found->end);
  out.end_token = found->id;
}

// What follows a reply in a longer conversation shows where the model would go on by itself, but a
// token says so better.
void find_stop(const ChatTemplate& chat, const BpeTokenizer& tokenizer, ReplyMarks& out) {
  const std::optional<MarkedText> longer = try_render(chat, asked_again(), false);
  const std::optional<TextRange> reply = longer ? extent(*longer, 2) : std::nullopt;
  if (!reply) return;
  std::string_view behind = own_text_from(*longer, reply->end);
  if (out.end_token >= 0 && behind.starts_with(out.end)) behind.remove_prefix(out.end.size());
  if (!tokenizer.first_added(behind)) out.stop = without_white_space_behind(behind);
}

// How many bytes of `mark` stand at its longest beginning that `text` contains, and where behind.
struct Beginning {
  size_t bytes = 0, behind = 0;
};
Beginning longest_beginning(std::string_view text, std::string_view mark) {
  for (size_t bytes = mark.size(); bytes > 0; --bytes)
    if (const size_t at = text.rfind(mark.substr(0, bytes)); at != std::string_view::npos)
      return {bytes, at + bytes};
  return {};
}

// Finds the replies of one conversation.
class ReplyFinder {
 public:
  ReplyFinder(const Conversation& conversation, const MarkedText& text, const ChatTemplate& chat,
              const ReplyMarks& marks)
      : conversation_(conversation), text_(text), chat_(chat), marks_(marks) {}

  std::optional<TextRange> find(size_t message) const {
    const auto origin = static_cast<uint32_t>(message + 1);
    const std::optional<TextRange> said = extent(text_, origin);
    if (!said) return find_empty(message);
    check_alone(*said, origin, message);
    const size_t gap = end_of_others(said->begin);
    TextRange out{begin_in(text_.view().substr(gap, said->begin - gap)) + gap, said->end};
    out.end += end_bytes(out.end);
    return out;
  }

 private:
  // A message without a character of its own: only a prompt for it shows where it stands.
  std::optional<TextRange> find_empty(size_t message) const {
    const ChatMessage& reply = conversation_.messages[message];
    if (message == 0 || !reply.content.empty()) return std::nullopt;
    Conversation before = conversation_;
    before.messages.resize(message);
    const std::optional<MarkedText> prompt = try_render(chat_, before, true);
    if (!prompt || !text_.view().starts_with(prompt->view())) return std::nullopt;
    TextRange out{prompt->size(), prompt->size()};
    const std::string_view rest = own_text_from(text_, out.begin);
    const size_t end = marks_.end.empty() ? std::string_view::npos : rest.find(end_mark());
    if (end == std::string_view::npos) return std::nullopt;
    out.end += end + end_mark().size();
    return out;
  }

  void check_alone(const TextRange& said, uint32_t origin, size_t message) const {
    size_t at = 0;
    for (const TextSpan& span : text_.spans()) {
      const bool within = at >= said.begin && at < said.end;
      require(!within || span.origin == origin || span.origin == template_origin, ErrorKind::data,
              "the chat template writes message {} in parts with others between them, so that it "
              "cannot be told what is learned",
              message + 1);
      at += span.bytes;
    }
  }

  // Where the last character that somebody wrote before `at` ends.
  size_t end_of_others(size_t at) const {
    size_t begin = 0, out = 0;
    for (const TextSpan& span : text_.spans()) {
      if (begin >= at) break;
      begin += span.bytes;
      if (span.origin != template_origin) out = begin;
    }
    return out;
  }

  // Where a reply begins in the template's text before what is said.
  size_t begin_in(std::string_view gap) const {
    if (marks_.header.empty())
      return gap.ends_with(marks_.before) ? gap.size() - marks_.before.size() : gap.size();
    const Beginning found = longest_beginning(gap, marks_.header);
    // Some prompts begin what is thought, which earlier turns do not show.
    return 2 * found.bytes >= marks_.header.size() ? found.behind : gap.size();
  }

  // The mark that ends a reply, without white space before it.
  std::string_view end_mark() const {
    const std::string_view end = marks_.end;
    return end.substr(std::min(end.size(), end.find_first_not_of(" \t\r\n")));
  }

  // How much of the template's text behind what is said belongs to the reply.
  size_t end_bytes(size_t said_end) const {
    const std::string_view tail = own_text_from(text_, said_end);
    const std::string_view mark = end_mark();
    const size_t at = mark.empty() ? std::string_view::npos : tail.find(mark);
    return at == std::string_view::npos ? 0 : at + mark.size();
  }

  const Conversation& conversation_;
  const MarkedText& text_;
  const ChatTemplate& chat_;
  const ReplyMarks& marks_;
};

// The generation blocks, but for those of messages that the data exclude.
std::vector<TextRange> generated(const Conversation& conversation, const MarkedText& text) {
  std::vector<TextRange> out;
  std::vector<bool> excluded;
  size_t at = 0;
  bool inside = false;
  for (const TextSpan& span : text.spans()) {
    if (span.generated) {
      if (!inside) {
        out.push_back({at, at});
        excluded.push_back(false);
      }
      out.back().end = at + span.bytes;
      const size_t message = span.origin;
      if (message > 0 && message <= conversation.messages.size() &&
          !conversation.messages[message - 1].learned)
        excluded.back() = true;
    }
    inside = span.generated;
    at += span.bytes;
  }
  size_t kept = 0;
  for (size_t i = 0; i < out.size(); ++i)
    if (!excluded[i]) out[kept++] = out[i];
  out.resize(kept);
  return out;
}

}  // namespace

ReplyMarks reply_marks(const ChatTemplate& chat, const BpeTokenizer& tokenizer) {
  ReplyMarks out;
  const std::optional<MarkedText> whole = try_render(chat, answered(), false);
  const std::optional<TextRange> reply = whole ? extent(*whole, 2) : std::nullopt;
  if (!reply) return out;
  find_end(own_text_from(*whole, reply->end), tokenizer, out);
  const std::optional<MarkedText> question = try_render(chat, asked(), false);
  const std::optional<MarkedText> prompt = try_render(chat, asked(), true);
  if (prompt && question && prompt->view().starts_with(question->view()))
    out.header = prompt->view().substr(question->size());
  if (prompt && whole->view().starts_with(prompt->view()) && prompt->size() <= reply->begin)
    out.before = whole->view().substr(prompt->size(), reply->begin - prompt->size());
  find_stop(chat, tokenizer, out);
  return out;
}

std::vector<TextRange> find_replies(const Conversation& conversation, const MarkedText& text,
                                    const ChatTemplate& chat, const ReplyMarks& marks) {
  if (chat.has_generation_blocks()) return generated(conversation, text);
  std::vector<TextRange> out;
  const ReplyFinder finder(conversation, text, chat, marks);
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const ChatMessage& message = conversation.messages[i];
    if (message.role != "assistant" || !message.learned) continue;
    if (const std::optional<TextRange> range = finder.find(i)) out.push_back(*range);
  }
  return out;
}

}  // namespace rankine
