#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/lfs_pointer.h"
#include "checkpoint/json.h"
#include "data/utf8_text.h"
#include "generate/generate.h"
#include "standard_input.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What other programs let a line say, and here is said once for all.
void refuse_settings(const JsonObject& line) {
  constexpr std::array<std::pair<const char*, const char*>, 9> settings{
      {{"max_tokens", "max-tokens"},
       {"max_new_tokens", "max-tokens"},
       {"temperature", "temperature"},
       {"top_k", "top-k"},
       {"top_p", "top-p"},
       {"seed", "seed"},
       {"stop", "stop"},
       {"n", "num-samples"},
       {"system", "system"}}};
  for (const auto& [key, option] : settings)
    require(line.find(key) == nullptr, ErrorKind::data,
            "{}: '{}' cannot be set line by line; give --{} for all, or leave it out", line.what(),
            key, option);
}

// {"prompt": "..."} or {"messages": [{"role": "user", "content": "..."}, ...]}
Prompt parse_line(std::string_view line, const std::string& what) {
  const nlohmann::json json = parse_json(line, what, RepeatedKeys::last_counts);
  refuse_settings(JsonObject(json, what));
  Prompt prompt;
  prompt.place = what;
  // What a line says beside its prompt, as an id, is for others.
  constexpr std::array<std::string_view, 5> read_here{"prompt", "messages", "tools", "documents",
                                                      "chat_template_kwargs"};
  ConversationFields fields;
  for (const auto& [key, value] : json.items())
    if (std::ranges::find(read_here, key) == read_here.end()) fields.ignored.push_back(key);
  Conversation read = parse_conversation(line, fields, false, what);
  const bool is_text = read.messages.size() == 1 && read.extras.empty() && json.contains("prompt");
  if (is_text)
    prompt.text = read.messages[0].content;
  else
    prompt.conversation = std::move(read);
  return prompt;
}

void read_lines(const fs::path& file, std::vector<Prompt>& out) {
  const std::string text = read_text(file);
  int64_t number = 0;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos)
      out.push_back(parse_line(line, fmt::format("'{}' line {}", file.string(), number + 1)));
    at = end + 1;
  }
}

// A text without the end of its last line, which editors add.
Prompt whole(std::string text, std::string place) {
  require(!is_lfs_pointer(text), ErrorKind::data, "{} is {}", place, lfs_pointer_text);
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return {std::move(text), {}, {}, std::move(place)};
}

// The prompt as the template has it; faults name the prompt.
std::vector<int32_t> encode_conversation(const Prompt& prompt, ChatEncoder& chat) {
  try {
    return chat.encode(prompt.conversation, true).ids;
  } catch (const Error& error) {
    fail(error.kind(), "{}{}", before(prompt.place), error.what());
  }
}

int32_t parse_id(const std::string& word) {
  size_t used = 0;
  int id = -1;
  try {
    id = std::stoi(word, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  require(used == word.size() && id >= 0, ErrorKind::usage, "--prompt-ids '{}' is no token id",
          word);
  return id;
}

}  // namespace

std::string before(const std::string& place) {
  return place.empty() ? "" : place + ": ";
}

bool is_interactive(const GenerateOptions& o) {
  return o.chat && o.prompts.empty() && o.prompt_files.empty();
}

std::vector<Prompt> read_prompts(const GenerateOptions& o) {
  std::vector<Prompt> prompts;
  if (!o.prompt_ids.empty()) {
    require(o.prompts.empty() && o.prompt_files.empty() && !o.chat, ErrorKind::usage,
            "--prompt-ids goes with none of --prompt, --prompt-file and --chat");
    prompts.emplace_back();
    for (const std::string& word : o.prompt_ids) prompts[0].ids.push_back(parse_id(word));
    return prompts;
  }
  for (const std::string& text : o.prompts) prompts.push_back({text, {}, {}});
  for (const fs::path& file : o.prompt_files) {
    if (file.extension() == ".jsonl")
      read_lines(file, prompts);
    else if (file == "-")
      prompts.push_back(whole(standard_input(), "standard input"));
    else
      prompts.push_back(whole(read_text(file), fmt::format("'{}'", file.string())));
  }
  if (o.prompts.empty() && o.prompt_files.empty()) prompts.emplace_back();
  std::string files;
  for (const fs::path& file : o.prompt_files)
    files += fmt::format("{}'{}'", files.empty() ? "" : ", ", file.string());
  require(!prompts.empty(), ErrorKind::data, "there is no prompt in {}", files);
  if (!o.chat) return prompts;
  for (Prompt& prompt : prompts) {
    if (prompt.is_chat()) continue;
    std::vector<ChatMessage>& messages = prompt.conversation.messages;
    if (!o.system.empty()) messages.push_back({"system", o.system});
    messages.push_back({"user", prompt.text});
  }
  return prompts;
}

void check_prompt_ids(const std::vector<int32_t>& ids, int64_t vocabulary,
                      const std::string& place) {
  for (const int32_t id : ids)
    require(id < vocabulary, ErrorKind::usage,
            "{}a prompt has the token {}, and the model a vocabulary of {}", before(place), id,
            vocabulary);
}

std::vector<int32_t> encode_prompt(const Prompt& prompt, const GenerateOptions& o,
                                   const TextTools& tools, ChatEncoder* chat) {
  if (!prompt.ids.empty()) return prompt.ids;
  if (prompt.is_chat()) return encode_conversation(prompt, *chat);
  std::vector<int32_t> ids = tools.bounds.begin;
  // A prompt may spell out the token that begins it.
  if (o.parse_special && ids.size() == 1 &&
      prompt.text.starts_with(tools.tokenizer->spelled(ids[0])))
    ids.clear();
  Encoder(*tools.tokenizer).encode(prompt.text, {.parse_special = o.parse_special}, ids);
  if (ids.empty()) ids = tools.text->first_tokens();
  require(!ids.empty(), ErrorKind::usage,
          "the tokenizer has no token that begins a text; give a --prompt");
  return ids;
}

std::string shown_text(const Record& record) {
  const std::string text = record.text + record.unfinished;
  std::string buffer;
  uint64_t replaced = 0;
  return std::string(valid_utf8(text, buffer, replaced));
}

std::string json_line(const Record& record, bool has_text) {
  Json json;
  if (!record.prompt.is_chat()) {
    json["prompt"] = record.prompt.text;
    if (!has_text) json["prompt"] = record.prompt.ids;
  } else {
    for (const ChatMessage& message : record.prompt.conversation.messages)
      json["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  json["sample"] = record.sample;
  if (has_text) json["text"] = shown_text(record);
  json["tokens"] = record.tokens;
  json["finish_reason"] = record.end == TextEnd::length ? "length" : "stop";
  // A prompt may have bytes that form no character.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rankine
