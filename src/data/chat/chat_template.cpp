#include "data/chat/chat_template.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "data/tokenizer/json_place.h"
#include "template/template_json.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// 26 July 2024, the day that published templates fall back to where they have no clock.
constexpr int64_t usual_day = 1'721'952'000;
constexpr std::array<std::string_view, 6> known_roles{"system", "user",      "assistant",
                                                      "tool",   "developer", "function"};
// They tell messages apart and change nothing where a template does not read them.
constexpr std::array<std::string_view, 2> identifying_fields{"name", "tool_call_id"};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

bool is_word_byte(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; at += word.size()) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word_byte(text[at - 1])) &&
        (end == text.size() || !is_word_byte(text[end])))
      return true;
  }
  return false;
}

struct OwnTemplates {
  std::string text, with_tools;  // "": none
  std::string file;
};

// A template, or a list of named ones, of which "default" and "tool_use" are meant.
OwnTemplates templates_of(const Json& json, const std::string& file) {
  OwnTemplates out;
  out.file = file;
  const auto at = json.is_object() ? json.find("chat_template") : json.end();
  if (at == json.end() || at->is_null()) return out;
  if (at->is_string()) {
    out.text = at->get<std::string>();
    return out;
  }
  const auto take = [&](const Json& name, const Json& text) {
    if (!name.is_string() || !text.is_string()) return;
    if (name == "default") out.text = text.get<std::string>();
    if (name == "tool_use") out.with_tools = text.get<std::string>();
  };
  if (at->is_array())
    for (const Json& entry : *at)
      if (entry.is_object() && entry.contains("name") && entry.contains("template"))
        take(entry.at("name"), entry.at("template"));
  if (at->is_object())
    for (const auto& [name, text] : at->items()) take(name, text);
  require(!out.text.empty(), ErrorKind::data,
          "'{}': chat_template is neither a text nor a list with one named 'default'", file);
  return out;
}

OwnTemplates own_templates(const ChatTemplateFiles& files) {
  const auto path = [&](const char* name) { return (fs::path(files.place) / name).string(); };
  if (!files.jinja.empty())
    return {.text = files.jinja, .with_tools = "", .file = path("chat_template.jinja")};
  for (const auto& [text, name] : {std::pair{&files.json, "chat_template.json"},
                                   std::pair{&files.config, "tokenizer_config.json"}}) {
    if (text->empty()) continue;
    OwnTemplates found = templates_of(parse_tokenizer_json(*text, path(name)), path(name));
    if (!found.text.empty()) return found;
  }
  return {};
}

const BuiltInTemplate& built_in(const std::string& name) {
  for (const BuiltInTemplate& entry : built_in_templates())
    if (entry.name == name) return entry;
  const std::string near = nearest_name(name, ChatTemplate::names());
  fail(ErrorKind::usage, "--chat-template '{}' is none of {}{}", name,
       joined(ChatTemplate::names()),
       near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
}

}  // namespace

const std::vector<std::string>& ChatTemplate::names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out;
    for (const BuiltInTemplate& entry : built_in_templates()) out.emplace_back(entry.name);
    return out;
  }();
  return all;
}

bool ChatTemplate::lies_in(const ChatTemplateFiles& files) {
  return !own_templates(files).text.empty();
}

ChatTemplate::ChatTemplate(std::string name, std::string text, const std::string& place)
    : name_(std::move(name)),
      text_(std::move(text)),
      program_(Template::parse(text_, place)),
      unix_time_(usual_day) {}

ChatTemplate ChatTemplate::parse(const ChatTemplateFiles& files, const ChatTemplateChoice& choice) {
  const auto make = [&] {
    if (!choice.name.empty()) {
      const BuiltInTemplate& named = built_in(choice.name);
      ChatTemplate out(choice.name, std::string(named.text), "template " + choice.name);
      out.is_built_in_ = true;
      out.required_tokens_ = named.tokens;
      return out;
    }
    const OwnTemplates own = own_templates(files);
    require(!own.text.empty(), ErrorKind::data,
            "'{}' has no chat template (chat_template in tokenizer_config.json, or "
            "chat_template.jinja); name one of {} with --chat-template",
            files.place, joined(names()));
    ChatTemplate out("the model's own", own.text, own.file);
    out.tool_text_ = own.with_tools;
    if (!own.with_tools.empty()) out.tool_program_ = Template::parse(own.with_tools, own.file);
    return out;
  };
  ChatTemplate out = make();
  out.tokens_ = files.tokens;
  if (!choice.kwargs.empty()) {
    const TemplateValue kwargs = template_value(choice.kwargs, 0, "--chat-template-kwargs");
    require(kwargs.is(ValueKind::dict), ErrorKind::usage,
            "--chat-template-kwargs '{}' is no JSON object", choice.kwargs);
    for (const auto& [key, value] : kwargs.as_dict().entries)
      require(out.program_.reads(key.as_text().view()), ErrorKind::usage,
              "--chat-template-kwargs: the chat template does not read '{}'", key.as_text().text());
  }
  out.kwargs_ = choice.kwargs;
  return out;
}

std::string ChatTemplate::identity() const {
  std::string out =
      text_ + '\0' + tool_text_ + '\0' + kwargs_ + '\0' + fmt::format("{}", unix_time_);
  for (const auto& [name, token] : tokens_) out += '\0' + name + '=' + token;
  return out;
}

bool ChatTemplate::mentions(std::string_view word) const {
  return has_word(text_, word) || has_word(tool_text_, word);
}

void ChatTemplate::check_fields(const Conversation& conversation) const {
  const auto check = [&](const ExtraField& field, const char* owner) {
    require(mentions(field.key) || std::ranges::count(identifying_fields, field.key) > 0,
            ErrorKind::usage,
            "{} has the field \"{}\", which the chat template does not read; name the fields that "
            "may be left out with --ignore-fields {}",
            owner, field.key, field.key);
  };
  for (const ExtraField& field : conversation.extras)
    if (field.key != "chat_template_kwargs") check(field, "a conversation");
  for (const ChatMessage& message : conversation.messages)
    for (const ExtraField& field : message.extras) check(field, "a message");
}

void ChatTemplate::check_roles(const Conversation& conversation) const {
  const std::vector<ChatMessage>& messages = conversation.messages;
  require(!messages.empty(), ErrorKind::data, "a conversation without a message");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    const bool usual = role == "system" || role == "user" || role == "assistant";
    const bool own = !is_built_in_ && !role.empty() &&
                     (std::ranges::count(known_roles, role) > 0 || mentions(role));
    require(usual || own, ErrorKind::data,
            "message {} is of role '{}', which the chat template does not know; there are system, "
            "user and assistant",
            i + 1, role);
    require(!is_built_in_ || role != "system" || i == 0, ErrorKind::data,
            "message {} is of role 'system', which only the first can be", i + 1);
  }
}

// What a template drops without a word would be missing from what is learned.
void ChatTemplate::check_complete(const Conversation& conversation, const MarkedText& text) const {
  std::vector<bool> seen(conversation.messages.size() + 1, false);
  for (const TextSpan& span : text.spans())
    if (span.origin < seen.size()) seen[span.origin] = true;
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const ChatMessage& message = conversation.messages[i];
    require(seen[i + 1] || message.role == "assistant" || is_blank(message.content),
            ErrorKind::data, "the chat template leaves out message {}, of role '{}'", i + 1,
            message.role);
  }
}

TemplateVariables ChatTemplate::variables_of(const Conversation& conversation,
                                             bool for_reply) const {
  TemplateVariables out;
  out.unix_time = unix_time_;
  std::vector<TemplateValue> messages;
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const ChatMessage& message = conversation.messages[i];
    const auto origin = static_cast<uint32_t>(i + 1);
    TemplateDict dict;
    dict.set("role", TemplateValue::text(message.role));  // one of those the template knows
    dict.set("content", message.has_content ? TemplateValue::text(message.content, origin)
                                            : TemplateValue::none(origin));
    for (const ExtraField& field : message.extras)
      dict.set(field.key, template_value(field.json, origin, "a message's " + field.key));
    messages.push_back(TemplateValue::dict(std::move(dict)));
  }
  const auto others = static_cast<uint32_t>(conversation.messages.size() + 1);
  out.values["messages"] = TemplateValue::list(std::move(messages));
  out.values["tools"] = out.values["documents"] = TemplateValue::none();
  out.values["add_generation_prompt"] = TemplateValue::boolean(for_reply);
  for (const auto& [name, token] : tokens_) out.values[name] = TemplateValue::text(token);
  const auto add_all = [&](const std::string& json, const std::string& place, uint32_t origin) {
    const TemplateValue more = template_value(json, origin, place);
    require(more.is(ValueKind::dict), ErrorKind::data, "{} is no JSON object", place);
    for (const auto& [key, value] : more.as_dict().entries)
      out.values[key.as_text().text()] = value;
  };
  if (!kwargs_.empty()) add_all(kwargs_, "--chat-template-kwargs", 0);
  for (const ExtraField& field : conversation.extras) {
    if (field.key == "chat_template_kwargs")
      add_all(field.json, field.key, others);
    else
      out.values[field.key] = template_value(field.json, others, field.key);
  }
  return out;
}

MarkedText ChatTemplate::render(const Conversation& conversation, bool for_reply) const {
  check_roles(conversation);
  check_fields(conversation);
  const bool has_tools = std::ranges::any_of(
      conversation.extras, [](const ExtraField& field) { return field.key == "tools"; });
  const Template& program = has_tools && tool_program_ ? *tool_program_ : program_;
  const TemplateVariables variables = variables_of(conversation, for_reply);
  try {
    MarkedText text = program.render(variables);
    check_complete(conversation, text);
    return text;
  } catch (const TemplateRefusal& refusal) {
    fail(ErrorKind::data, "the chat template refuses the conversation: {}", refusal.said());
  }
}

}  // namespace rankine
