#include "data/chat_template.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {
namespace {

constexpr std::string_view white_space = " \t\r\n\f\v";

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(white_space);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(white_space) + 1 - begin);
}

std::string without_lines_before(const std::string& text) {
  return text.substr(std::min(text.size(), text.find_first_not_of('\n')));
}

}  // namespace

std::string ChatTemplate::stop_text() const {
  return style_ == Style::lines ? "\nUser:" : "";
}

std::vector<ChatPiece> ChatTemplate::render(Messages messages, bool for_reply) const {
  require(!messages.empty(), ErrorKind::data, "a conversation without a message");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    require(role == "user" || role == "assistant" || role == "system", ErrorKind::data,
            "message {} is of role '{}'; there are system, user and assistant", i + 1, role);
    require(role != "system" || i == 0, ErrorKind::data,
            "message {} is of role 'system', which only the first can be", i + 1);
  }
  switch (style_) {
    case Style::headers:
      return render_headers(messages, for_reply);
    case Style::lines:
      return render_lines(messages, for_reply);
    case Style::instructions:
      return render_instructions(messages, for_reply);
  }
  fail(ErrorKind::internal, "a chat template without a style");
}

// Takes the system message off, or what the template says instead; its role is "" for none.
ChatMessage ChatTemplate::opening(Messages& messages) const {
  ChatMessage system{default_system_.empty() ? "" : "system", default_system_};
  if (messages[0].role == "system") {
    system = messages[0];
    messages = messages.subspan(1);
  }
  if (trims_) system.content = trimmed(system.content);
  if (!before_system_.empty()) system = {"system", before_system_ + system.content};
  return system;
}

// What was thought before a reply stays with the turns behind the user's last message only, and is
// empty where nothing was.
void ChatTemplate::add_reply(Messages messages, size_t index, Pieces& out) const {
  const auto add = [&](const std::string& text, ChatText kind = ChatText::plain) {
    if (!text.empty()) out.push_back({text, kind, true});
  };
  const std::string& content = messages[index].content;
  if (!thinks_)
    return add(before_reply_ + (trims_replies_ ? trimmed(content) : content) + behind_reply_);
  const std::string end = "</think>", begin = "<think>";
  std::string thought, reply = content;
  if (const size_t at = content.rfind(end); at != std::string::npos) {
    thought = content.substr(0, content.find(end));
    if (const size_t open = thought.rfind(begin); open != std::string::npos)
      thought = thought.substr(open + begin.size());
    thought = without_lines_before(thought);
    thought.erase(thought.find_last_not_of('\n') + 1);
    reply = without_lines_before(content.substr(at + end.size()));
  }
  const bool last = index + 1 == messages.size();
  const bool asked_later =
      std::ranges::any_of(messages.subspan(index), [](const auto& m) { return m.role == "user"; });
  if (asked_later || (thought.empty() && !last)) return add(reply);
  add(begin, ChatText::mark);
  add("\n" + thought + "\n");
  add(end, ChatText::mark);
  add("\n\n" + without_lines_before(reply));
}

std::vector<ChatPiece> ChatTemplate::render_headers(Messages messages, bool for_reply) const {
  Pieces out;
  if (!begin_.empty()) out.push_back({begin_, ChatText::token});
  const auto header = [&](const std::string& role) {
    out.push_back({open_, ChatText::token});
    if (close_.empty()) return out.push_back({role + behind_role_});
    out.push_back({role});
    out.push_back({close_, ChatText::token});
    out.push_back({behind_role_});
  };
  const auto end = [&](bool reply) {
    out.push_back({end_, ChatText::token, reply});
    if (!behind_end_.empty()) out.push_back({behind_end_});
  };
  const auto add = [&](const std::string& role, const std::string& content) {
    header(role);
    if (!content.empty()) out.push_back({content});
    end(false);
  };
  const ChatMessage system = opening(messages);
  if (!system.role.empty()) add(system.role, system.content);
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    if (role != "assistant") {
      add(role, trims_ ? trimmed(content) : content);
      continue;
    }
    header(role);
    add_reply(messages, i, out);
    end(true);
  }
  if (for_reply) header("assistant");
  return out;
}

std::vector<ChatPiece> ChatTemplate::render_lines(Messages messages, bool for_reply) const {
  Pieces out;
  if (!begin_.empty() && begin_ != end_) out.push_back({begin_, ChatText::token});
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    if (role != "assistant") {
      out.push_back({(role == "user" ? "User: " : "System: ") + content + "\n"});
      continue;
    }
    out.push_back({"Assistant:"});
    add_reply(messages, i, out);
    if (!end_.empty()) out.push_back({end_, ChatText::token, true});
    out.push_back({"\n"});
  }
  if (for_reply) out.push_back({"Assistant:"});
  return out;
}

std::vector<ChatPiece> ChatTemplate::render_instructions(Messages messages, bool for_reply) const {
  const ChatMessage system = opening(messages);
  for (size_t i = 0; i < messages.size(); ++i)
    require(messages[i].role == (i % 2 == 0 ? "user" : "assistant"), ErrorKind::data,
            "the chat template '{}' wants user and assistant in turn, the user first; message {} "
            "is of role '{}'",
            name_, i + 1, messages[i].role);
  require(!for_reply || messages.size() % 2 == 1, ErrorKind::data,
          "the assistant has replied already; a reply follows a user's message");
  size_t carrier = 0;  // of the system message
  for (size_t i = 0; system_with_last_ && i < messages.size(); i += 2) carrier = i;
  Pieces out;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& content = messages[i].content;
    if (i % 2 == 1) {
      add_reply(messages, i, out);
      out.push_back({end_, ChatText::token, true});
      if (!behind_end_.empty()) out.push_back({behind_end_});
      continue;
    }
    if (i == 0 || begins_every_turn_) out.push_back({begin_, ChatText::token});
    out.push_back({"[INST]", ChatText::mark});
    const bool instructed = i == carrier && !system.role.empty();
    out.push_back({behind_open_ +
                   (instructed ? system_open_ + system.content + system_close_ : std::string()) +
                   (trims_ ? trimmed(content) : content) + before_close_});
    out.push_back({"[/INST]", ChatText::mark});
  }
  return out;
}

ChatTokens encode_chat(std::span<const ChatPiece> pieces, const BpeTokenizer& tokenizer,
                       Encoder& encoder) {
  ChatTokens out;
  std::string run, section;  // ordinary text since the last token; its part not encoded yet
  TokenIds known;            // ids of the run without the section
  bool continues = false;    // the run stands behind a token
  const auto add = [&](std::span<const int32_t> ids, bool reply) {
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.is_reply.resize(out.ids.size(), reply);
  };
  const auto end_section = [&](bool reply) {
    if (section.empty()) return;
    run += section;
    TokenIds ids;
    encoder.encode(run, {.continues = continues}, ids);
    if (!std::ranges::equal(known, std::span(ids).first(std::min(known.size(), ids.size())))) {
      known.clear();
      ids.clear();
      continues = true;
      run = section;
      encoder.encode(run, {.continues = continues}, ids);
    }
    add(std::span(ids).subspan(known.size()), reply);
    known = std::move(ids);
    section.clear();
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& [text, kind, reply] = pieces[i];
    if (i > 0 && reply != pieces[i - 1].is_reply) end_section(pieces[i - 1].is_reply);
    const int32_t id = kind == ChatText::plain ? -1 : tokenizer.added_id(text);
    require(kind != ChatText::token || id >= 0, ErrorKind::usage,
            "the tokenizer has no token '{}', which this chat template is made of; choose another "
            "with --chat-template, 'plain' for a model that was not trained to chat",
            text);
    if (id < 0) {
      section += text;
      continue;
    }
    end_section(reply);
    add(std::span(&id, 1), reply);
    run.clear();
    known.clear();
    continues = true;
  }
  if (!pieces.empty()) end_section(pieces.back().is_reply);
  return out;
}

}  // namespace rankine
