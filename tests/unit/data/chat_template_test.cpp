#include "data/chat/chat_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/text_tokenizer.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using Json = nlohmann::json;
using test::error_of;
using test::message_of;

const Conversation question{{{"user", " Hi "}}};
const Conversation talk{
    {{"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Hello"}, {"user", "Bye"}}};

// ChatML with a system text of its own where there is none, as several models have it.
constexpr const char* with_default =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
    "'<|im_start|>system\\nHelp.<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + "
    "'\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt "
    "%}{{ '<|im_start|>assistant\\n' }}{% endif %}";

ChatTemplateFiles files_of(const std::string& jinja) {
  return {.config = Json{{"chat_template", jinja}}.dump(),
          .jinja = "",
          .json = "",
          .place = "folder",
          .tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}}};
}

ChatTemplate own(const std::string& jinja, const std::string& kwargs = "") {
  return ChatTemplate::parse(files_of(jinja), {.name = "", .kwargs = kwargs});
}

ChatTemplate named(const std::string& name) {
  return ChatTemplate::parse({.config = "", .jinja = "", .json = "", .place = "folder"},
                             {.name = name, .kwargs = ""});
}

std::string text_of(const ChatTemplate& chat, const Conversation& conversation,
                    bool for_reply = true) {
  return chat.render(conversation, for_reply).text();
}

Conversation first_of(const Conversation& whole, size_t messages) {
  Conversation out = whole;
  out.messages.resize(messages);
  return out;
}

Conversation without_system(const Conversation& whole) {
  Conversation out = whole;
  out.messages.erase(out.messages.begin());
  return out;
}

TEST(ChatTemplate, Llama3) {
  const ChatTemplate chat = named("llama3");
  EXPECT_EQ(text_of(chat, question),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(text_of(chat, talk, false),
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>");
  EXPECT_TRUE(text_of(named("llama3.1"), question)
                  .starts_with("<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
                               "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
                               "<|eot_id|><|start_header_id|>user"));
  EXPECT_NE(text_of(named("llama3.1"), talk).find("2024\n\nBe brief.<|eot_id|>"),
            std::string::npos);
}

TEST(ChatTemplate, TheModelsOwnIsExecuted) {
  EXPECT_EQ(text_of(own(with_default), question),
            "<|im_start|>system\nHelp.<|im_end|>\n"
            "<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(text_of(named("chatml"), question),
            "<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
  // Marks alone would take both of these for ChatML.
  EXPECT_TRUE(text_of(own("{{ bos_token }}" + std::string(with_default)), question)
                  .starts_with("<s><|im_start|>system"));
  const std::string thinks =
      std::string(with_default)
          .replace(std::string(with_default).rfind("\\n'"), 3, "\\n<think>\\n'");
  EXPECT_TRUE(text_of(own(thinks), question).ends_with("<|im_start|>assistant\n<think>\n"))
      << text_of(own(thinks), question);
}

TEST(ChatTemplate, Qwen3KeepsWhatWasThoughtBehindTheLastQuestionOnly) {
  const ChatTemplate chat = named("qwen3");
  const Conversation thoughts{{{"user", "1+1?"},
                               {"assistant", "<think>\nEasy.\n</think>\n\n2"},
                               {"user", "2+2?"},
                               {"assistant", "<think>\nToo.\n</think>\n\n4"}}};
  EXPECT_EQ(text_of(chat, thoughts, false),
            "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n"
            "<|im_start|>user\n2+2?<|im_end|>\n"
            "<|im_start|>assistant\n<think>\nToo.\n</think>\n\n4<|im_end|>\n");
  EXPECT_EQ(text_of(chat, {{{"user", "a"}, {"assistant", "b"}}}, false),
            "<|im_start|>user\na<|im_end|>\n"
            "<|im_start|>assistant\n<think>\n\n</think>\n\nb<|im_end|>\n");
  Conversation apart{{{"user", "a"}, {"assistant", "b"}}};
  apart.messages[1].extras = {{"reasoning_content", "\"c\""}};
  EXPECT_TRUE(text_of(chat, apart, false).ends_with("<think>\nc\n</think>\n\nb<|im_end|>\n"));
}

TEST(ChatTemplate, InstructionStyles) {
  EXPECT_EQ(text_of(named("mistral"), talk),
            "<s>[INST] Be brief.\n\nHi[/INST] Hello</s>[INST] Bye[/INST]");
  EXPECT_EQ(text_of(named("llama2"), talk),
            "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello </s>"
            "<s>[INST] Bye [/INST]");
  EXPECT_NE(message_of([&] {
              named("mistral").render({{{"assistant", "Hi"}}}, false);
            }).find("in turn"),
            std::string::npos);
}

TEST(ChatTemplate, PlainIsTextByLines) {
  EXPECT_EQ(text_of(named("plain"), talk),
            "System: Be brief.\nUser: Hi\nAssistant: Hello\nUser: Bye\nAssistant:");
  ChatTemplateFiles files = files_of("");
  const ChatTemplate bounded = ChatTemplate::parse(files, {.name = "plain", .kwargs = ""});
  EXPECT_EQ(text_of(bounded, first_of(without_system(talk), 2), false),
            "<s>User: Hi\nAssistant: Hello</s>\n");
}

TEST(ChatTemplate, IsReadFromItsFiles) {
  const auto text = [](const std::string& config, const std::string& jinja = "",
                       const std::string& json = "") {
    return ChatTemplate::parse({.config = config, .jinja = jinja, .json = json, .place = "folder"})
        .text();
  };
  EXPECT_NE(message_of([&] { text(""); }).find("has no chat template"), std::string::npos);
  EXPECT_NE(message_of([&] { text("{\"chat_template\": null}"); }).find("has no chat template"),
            std::string::npos);
  const std::string list = Json{{"chat_template",
                                 {{{"name", "tool_use"}, {"template", "b{{ tools }}"}},
                                  {{"name", "default"}, {"template", "a"}}}}}
                               .dump();
  EXPECT_EQ(text(list), "a");
  EXPECT_EQ(text(list, "c"), "c");
  EXPECT_EQ(text(list, "", Json{{"chat_template", "d"}}.dump()), "d");
  // Of two the one for tools is taken where there are tools.
  const ChatTemplate two =
      ChatTemplate::parse({.config = list, .jinja = "", .json = "", .place = "folder"});
  Conversation with_tools{{{"assistant", "x"}}};
  EXPECT_EQ(text_of(two, with_tools), "a");
  with_tools.extras = {{"tools", "[1]"}};
  EXPECT_EQ(text_of(two, with_tools), "b[1]");
}

TEST(ChatTemplate, FaultsNameTheFile) {
  const auto expect_named = [](const ChatTemplateFiles& files, const std::string& name) {
    const Error error = error_of([&] { ChatTemplate::parse(files); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find("'folder/" + name + "'"), std::string::npos)
        << error.what();
  };
  for (const char* text : {"{", R"({"chat_template": 7})", R"({"chat_template": "{% if %}"})"})
    expect_named({.config = text, .jinja = "", .json = "", .place = "folder"},
                 "tokenizer_config.json");
  expect_named({.config = "", .jinja = "{{", .json = "", .place = "folder"}, "chat_template.jinja");
}

TEST(ChatTemplate, RefusesWhatItDoesNotKnow) {
  const Error typo = error_of([] { named("chatlm"); });
  EXPECT_EQ(typo.kind(), ErrorKind::usage);
  EXPECT_NE(std::string(typo.what()).find("did you mean 'chatml'"), std::string::npos);
  const auto refused = [](const ChatTemplate& chat, const Conversation& conversation,
                          const std::string& word) {
    const std::string message = message_of([&] { chat.render(conversation, true); });
    EXPECT_NE(message.find(word), std::string::npos) << message;
  };
  refused(named("chatml"), {{{"tool", "x"}}}, "'tool'");
  refused(named("chatml"), {{{"user", "x"}, {"system", "y"}}}, "only the first");
  refused(named("chatml"), {}, "without a message");
  refused(own(with_default), {{{"human", "x"}}}, "'human'");
  EXPECT_NO_THROW(own(with_default).render({{{"tool", "x"}}}, true));
  EXPECT_NO_THROW(own("{# model #}" + std::string(with_default)).render({{{"model", "x"}}}, true));
  refused(own("{{ raise_exception('not so') }}"), question, "not so");
}

// What a template would drop without a word.
TEST(ChatTemplate, NothingThatPeopleWroteIsLost) {
  const ChatTemplate drops =
      own("{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}");
  EXPECT_EQ(text_of(drops, question), " Hi ");
  EXPECT_NE(message_of([&] { drops.render(talk, true); }).find("leaves out message 1"),
            std::string::npos);
  Conversation odd = question;
  odd.messages[0].extras = {{"tool_calls", "[]"}};
  const Error field = error_of([&] { drops.render(odd, true); });
  EXPECT_EQ(field.kind(), ErrorKind::usage);
  EXPECT_NE(std::string(field.what()).find("\"tool_calls\""), std::string::npos);
  EXPECT_NO_THROW(own("{{ messages[0].tool_calls }}{{ messages[0].content }}").render(odd, true));
  odd.messages[0].extras = {{"name", "\"Ann\""}};
  EXPECT_NO_THROW(drops.render(odd, true));
  Conversation with_tools = question;
  with_tools.extras = {{"tools", "[]"}};
  EXPECT_NE(message_of([&] { drops.render(with_tools, true); }).find("\"tools\""),
            std::string::npos);
}

TEST(ChatTemplate, TakesFurtherVariables) {
  const std::string jinja = "{{ messages[0].content }}{{ 'T' if enable_thinking else 'F' }}";
  EXPECT_EQ(text_of(own(jinja), question), " Hi F");
  EXPECT_EQ(text_of(own(jinja, "{\"enable_thinking\": true}"), question), " Hi T");
  Conversation says = question;
  says.extras = {{"chat_template_kwargs", "{\"enable_thinking\": true}"}};
  EXPECT_EQ(text_of(own(jinja), says), " Hi T");
  EXPECT_EQ(error_of([&] { own(jinja, "{\"enable_think\": true}"); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_of([&] { own(jinja, "[]"); }).kind(), ErrorKind::usage);
  EXPECT_NE(own(jinja).identity(), own(jinja, "{\"enable_thinking\": true}").identity());
}

TEST(ChatTemplate, TheDayDoesNotChangeByItself) {
  const std::string jinja = "{{ messages[0].content }}{{ strftime_now('%d %b %Y') }}";
  ChatTemplate chat = own(jinja);
  EXPECT_EQ(text_of(chat, question), " Hi 26 Jul 2024");
  chat.set_time(0);
  EXPECT_EQ(text_of(chat, question), " Hi 01 Jan 1970");
}

}  // namespace
}  // namespace rankine
