#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/chat_template.h"
#include "data/tokenizer/json_place.h"

// Which template a model's folder means, told by the marks in it.
namespace rankine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// "<s>", or {"content": "<s>", ...}; "" for null or none.
std::string token_text(const Json& config, const char* key) {
  if (!config.is_object() || !config.contains(key)) return "";
  const Json& value = config.at(key);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value.at("content").is_string())
    return value.at("content").get<std::string>();
  return "";
}

// The template of a configuration: a text, or a list of named ones of which "default" is meant.
std::string template_text(const Json& config, const std::string& file) {
  if (!config.is_object() || !config.contains("chat_template")) return "";
  const Json& value = config.at("chat_template");
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  const auto text_of = [](const Json& entry, const char* key) {
    return entry.is_object() && entry.contains(key) && entry.at(key).is_string()
               ? entry.at(key).get<std::string>()
               : std::string();
  };
  if (value.is_array())
    for (const Json& entry : value)
      if (text_of(entry, "name") == "default") return text_of(entry, "template");
  fail(ErrorKind::data, "'{}': chat_template is neither a text nor a list with one named 'default'",
       file);
}

// What stands out in a template, for messages: "<start_of_turn>", "[SYSTEM_PROMPT]".
std::vector<std::string> marks_in(const std::string& jinja) {
  std::vector<std::string> marks;
  for (size_t at = 0; (at = jinja.find_first_of("<[", at)) != std::string::npos; ++at) {
    const size_t end = jinja.find(jinja[at] == '<' ? '>' : ']', at);
    if (end == std::string::npos || end - at < 2 || end - at > 40) continue;
    const std::string mark = jinja.substr(at, end + 1 - at);
    const bool word = mark.find_first_of(" '\"\n=", 1) == std::string::npos;
    const bool capitals =
        mark[0] == '<' ||
        mark.find_first_of("abcdefghijklmnopqrstuvwxyz0123456789:-") == std::string::npos;
    if (word && capitals && std::ranges::find(marks, mark) == marks.end() && marks.size() < 4)
      marks.push_back(mark);
  }
  return marks;
}

std::string recognised_name(const std::string& jinja, const std::string& file) {
  if (has(jinja, "<|start_header_id|>") && has(jinja, "<|eot_id|>"))
    return has(jinja, "Cutting Knowledge Date") ? "llama3.1" : "llama3";
  if (has(jinja, "<|im_start|>") && has(jinja, "<|im_end|>"))
    return has(jinja, "</think>") ? "qwen3" : "chatml";
  if (has(jinja, "[INST]") && has(jinja, "[/INST]") && !has(jinja, "[SYSTEM_PROMPT]"))
    return has(jinja, "<<SYS>>") ? "llama2" : "mistral";
  const std::vector<std::string> marks = marks_in(jinja);
  if (marks.empty() && has(jinja, "User: ") && has(jinja, "Assistant:")) return "plain";
  fail(ErrorKind::data,
       "'{}': the chat template is none of {}{}; name the one that fits with --chat-template", file,
       joined(ChatTemplate::names()),
       marks.empty() ? " and has no marks" : "; it is built of " + joined(marks));
}

// Of "'<|im_start|>system\nYou are Qwen.<|im_end|>": the system text that stands in for none.
std::string default_system_of(const std::string& jinja) {
  for (const std::string_view line_end : {"\\n", "\n"}) {
    const std::string open = "<|im_start|>system" + std::string(line_end);
    for (size_t at = 0; (at = jinja.find(open, at)) != std::string::npos;) {
      at += open.size();
      const size_t end = jinja.find("<|im_end|>", at);
      if (end == std::string::npos) break;
      const std::string text = jinja.substr(at, end - at);
      if (!text.empty() && text.find_first_of("'\"{}") == std::string::npos) return text;
    }
  }
  return "";
}

}  // namespace

const std::vector<std::string>& ChatTemplate::names() {
  static const std::vector<std::string> all{"llama3",  "llama3.1", "chatml", "qwen3",
                                            "mistral", "llama2",   "plain"};
  return all;
}

ChatTemplate ChatTemplate::open(const fs::path& folder, const std::string& name) {
  const auto text_of = [&](const char* file) {
    return is_there(folder / file) ? read_text(folder / file) : std::string();
  };
  return parse(text_of("tokenizer_config.json"), text_of("chat_template.jinja"), folder.string(),
               name);
}

ChatTemplate ChatTemplate::parse(std::string_view config, std::string_view jinja,
                                 const std::string& place, const std::string& name) {
  const std::string config_file = (fs::path(place) / "tokenizer_config.json").string();
  const std::string file =
      jinja.empty() ? config_file : (fs::path(place) / "chat_template.jinja").string();
  const Json parsed = config.empty() ? Json::object() : parse_tokenizer_json(config, config_file);
  std::string text(jinja);
  if (text.empty() && name.empty()) text = template_text(parsed, file);
  require(!name.empty() || !text.empty(), ErrorKind::data,
          "'{}' has no chat template (chat_template in tokenizer_config.json, or "
          "chat_template.jinja); name one of {} with --chat-template",
          place, joined(names()));
  ChatTemplate out;
  out.begin_ = token_text(parsed, "bos_token");
  out.end_ = token_text(parsed, "eos_token");
  out.choose(name.empty() ? recognised_name(text, file) : name);
  if (name.empty()) out.take_details(text);
  return out;
}

void ChatTemplate::choose(const std::string& name) {
  const std::string near = nearest_name(name, names());
  require(std::ranges::find(names(), name) != names().end(), ErrorKind::usage,
          "--chat-template '{}' is none of {}{}", name, joined(names()),
          near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  name_ = name;
  if (name == "plain") before_reply_ = " ";
  if (name == "plain") return;
  if (name == "llama3" || name == "llama3.1") {
    style_ = Style::headers;
    begin_ = "<|begin_of_text|>";
    open_ = "<|start_header_id|>";
    close_ = "<|end_header_id|>";
    behind_role_ = "\n\n";
    end_ = "<|eot_id|>";
    trims_ = trims_replies_ = true;
    if (name == "llama3.1")  // the date is the one its template falls back to
      before_system_ = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
  } else if (name == "chatml" || name == "qwen3") {
    style_ = Style::headers;
    begin_.clear();
    open_ = "<|im_start|>";
    behind_role_ = behind_end_ = "\n";
    end_ = "<|im_end|>";
    thinks_ = name == "qwen3";
  } else {
    style_ = Style::instructions;
    if (begin_.empty()) begin_ = "<s>";
    if (end_.empty()) end_ = "</s>";
    behind_open_ = before_reply_ = " ";
    system_close_ = "\n\n";
    if (name == "mistral") return;
    before_close_ = behind_reply_ = " ";
    trims_ = trims_replies_ = begins_every_turn_ = true;
    system_open_ = "<<SYS>>\n";
    system_close_ = "\n<</SYS>>\n\n";
  }
}

// Where models of one family differ.
void ChatTemplate::take_details(const std::string& jinja) {
  if (style_ == Style::headers && open_ == "<|im_start|>")
    default_system_ = default_system_of(jinja);
  if (name_ != "mistral") return;
  behind_open_ = has(jinja, "[INST] ") ? " " : "";
  before_close_ = has(jinja, " [/INST]") ? " " : "";
  before_reply_ = has(jinja, "' ' + message") || has(jinja, "\" \" + message") ? " " : "";
  trims_replies_ = has(jinja, "content']|trim") || has(jinja, "content\"]|trim") ||
                   has(jinja, "content'].strip") || has(jinja, "content | trim");
  behind_end_ = has(jinja, "eos_token + ' '") || has(jinja, "eos_token + \" \"") ? " " : "";
  system_with_last_ = has(jinja, "loop.last and system_message");
}

}  // namespace rankine
