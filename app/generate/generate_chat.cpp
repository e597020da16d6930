#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>

#include "generate/generate.h"
#include "machine/stop_signal.h"

namespace rankine {
namespace {

struct Room {
  int64_t positions, vocabulary;
};

// The ids of a conversation that leave room for a reply. What was said first is forgotten when it
// has become too long.
std::vector<int32_t> fitting_ids(Conversation& conversation, ChatEncoder& encoder, const Room& room,
                                 Log& log) {
  const int64_t positions = room.positions;
  std::vector<ChatMessage>& messages = conversation.messages;
  const size_t first = messages[0].role == "system" ? 1 : 0;
  for (;;) {
    std::vector<int32_t> ids = encoder.encode(conversation, true).ids;
    check_prompt_ids(ids, room.vocabulary, "");
    if (static_cast<int64_t>(ids.size()) < positions) return ids;
    require(messages.size() > first + 2, ErrorKind::usage,
            "a message of {} tokens leaves no room for a reply in {} positions; choose a larger "
            "--context",
            ids.size(), positions);
    const auto begin = messages.begin() + static_cast<std::ptrdiff_t>(first);
    messages.erase(begin, begin + 2);
    log_line(log, "the conversation fills its {} tokens; its first exchange is forgotten",
             positions);
  }
}

}  // namespace

int converse(const Chat& chat, Generator& generator, int64_t positions, Log& log) {
  const auto& [o, tools, encoder] = chat;
  const bool asks = ::isatty(STDIN_FILENO) != 0 && !o.json;
  Conversation conversation;
  std::vector<ChatMessage>& messages = conversation.messages;
  if (!o.system.empty()) messages.push_back({"system", o.system});
  for (uint64_t turn = 0;; ++turn) {
    if (asks) print_out("> ");
    std::string line;
    if (!std::getline(std::cin, line)) break;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    messages.push_back({"user", line});
    const std::vector<int32_t> ids =
        fitting_ids(conversation, chat.encoder, {positions, tools.vocabulary}, log);
    const Prompt prompt{line, conversation, ids};
    Record record{.prompt = prompt};
    TextStream stream(*tools.tokenizer, tools.stops, ids);
    const auto add = [&](std::string piece) {
      if (record.text.empty()) piece.erase(0, chat.encoder.reply_begins(piece));
      record.text += piece;
      if (!o.json) print_out(piece);
    };
    const StopSignal stop;
    const int64_t room = positions - static_cast<int64_t>(ids.size());
    record.end =
        generator.run_on({ids, std::min(o.max_tokens, room), turn}, [&](size_t, int32_t id) {
          record.tokens.push_back(id);
          add(stream.push(id));
          return !stream.stopped() && stop.received() == 0;
        });
    add(stream.finish());
    record.unfinished = stream.unfinished();
    const int signal = stop.received();
    const bool ends = signal != 0 && (signal != SIGINT || !asks);
    if (!ends || !o.json) print_out(o.json ? json_line(record, true) : "\n");
    if (ends) return stopped_code(signal);
    messages.push_back({"assistant", shown_text(record)});
  }
  if (asks) print_out("\n");
  return 0;
}

}  // namespace rankine
