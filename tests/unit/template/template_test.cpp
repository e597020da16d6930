#include "template/template.h"

#include <thread>

#include "support/errors.h"
#include "support/template_cases.h"

namespace rankine::test {
namespace {

MarkedText rendered(const std::string& text, const std::string& json = "{}",
                    const TemplateLimits& limits = {}) {
  return Template::parse(text, "t").render(template_variables(OrderedJson::parse(json)), limits);
}

std::string refusal(const std::string& text, const TemplateLimits& limits = {}) {
  return message_of([&] { rendered(text, "{}", limits); });
}

TEST(Template, NamesLineAndColumnOfFaults) {
  EXPECT_EQ(refusal("a\n  {{ x y }}"), "'t': line 2, column 8: expected '}}', found 'y'");
  EXPECT_EQ(refusal("é{{ x.y }}"), "'t': line 1, column 6: 'x' is undefined");
  EXPECT_EQ(refusal("{% if x %}"), "'t': line 1, column 4: the block 'if' has no 'endif'");
  EXPECT_EQ(refusal("\n\n{{ 'a' + 1 }}"),
            "'t': line 3, column 8: '+' has no meaning between a 'str' and a 'int'");
  EXPECT_EQ(refusal("{{ 'a' | grep }}"), "'t': line 1, column 10: there is no filter 'grep'");
  EXPECT_EQ(refusal("{{ 1 is grep }}"), "'t': line 1, column 9: there is no test 'grep'");
  EXPECT_EQ(refusal("{# a"), "'t': line 1, column 1: a comment without its end");
  EXPECT_EQ(refusal("{% macro m(a) %}{{ a.b.c }}{% endmacro %}\n{{ m({}) }}"),
            "'t': line 1, column 23: 'dict object' has no attribute 'b'");
}

TEST(Template, RefusesWhatReadsOrChangesAnything) {
  for (const std::string tag :
       {"include", "import", "from", "extends", "block", "do", "autoescape"})
    EXPECT_NE(refusal("{% " + tag + " 'x' %}").find("'" + tag + "' is not for chat templates"),
              std::string::npos);
  for (const std::string call :
       {"[].append(1)", "[].pop()", "{}.update({})", "{}.pop('a')", "[].sort()", "{}.clear()"})
    EXPECT_NE(refusal("{{ " + call + " }}").find("is not for templates, which change nothing"),
              std::string::npos)
        << call;
  EXPECT_NE(refusal("{{ ''.__class__.x }}").find("__class__"), std::string::npos);
  EXPECT_NE(refusal("{{ 'a'.encode() }}").find("'encode' of a text is not offered"),
            std::string::npos);
}

TEST(Template, TellsARefusalFromAFault) {
  const std::string text =
      "{% if true %}\n{{ raise_exception('roles must ' ~ 'alternate') }}{% endif %}";
  try {
    rendered(text);
    FAIL() << "nothing was thrown";
  } catch (const TemplateRefusal& refused) {
    EXPECT_EQ(refused.said(), "roles must alternate");
    EXPECT_STREQ(refused.what(), "'t': line 2, column 19: roles must alternate");
    EXPECT_EQ(refused.kind(), ErrorKind::data);
  }
  EXPECT_THROW(rendered("{{ nothing.at_all }}"), Error);
}

TEST(Template, SaysWhatItReads) {
  const Template chat = Template::parse(
      "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
      "{% if add_generation_prompt %}{{ bos_token }}{% endif %}{% set own = 1 %}{{ own }}",
      "t");
  EXPECT_TRUE(chat.has_generation_blocks());
  for (const char* name : {"messages", "add_generation_prompt", "bos_token"})
    EXPECT_TRUE(chat.reads(name)) << name;
  for (const char* name : {"tools", "own", "m", "loop"}) EXPECT_FALSE(chat.reads(name)) << name;
  EXPECT_FALSE(Template::parse("{# generation #}", "t").has_generation_blocks());
}

TEST(Template, TellsTheTimeItIsGiven) {
  const Template dated = Template::parse("{{ strftime_now('%d %b %Y %H:%M') }}", "t");
  TemplateVariables variables;
  EXPECT_EQ(message_of([&] { dated.render(variables); }),
            "'t': line 1, column 16: the template asks for the time, and none is given");
  variables.unix_time = 86'400 * 365;
  EXPECT_EQ(dated.render(variables).text(), "01 Jan 1971 00:00");
}

TEST(Template, MarksGenerationBlocks) {
  const MarkedText text = rendered(
      "{% for m in messages %}<{{ m.role }}>"
      "{% generation %}{{ m.content }}{{ '<end>' }}{% endgeneration %}\n{% endfor %}",
      R"({"messages": [{"role": "a", "content": "hi"}]})");
  EXPECT_EQ(text.text(), "<a>hi<end>");
  const std::vector<TextSpan> expected = {
      {1, 0, false}, {1, 1, false}, {1, 0, false}, {2, 1, true}, {5, 0, true}};
  EXPECT_EQ(text.spans(), expected);
}

TEST(Template, RendersFromManyThreadsAtOnce) {
  const Template chat = Template::parse(
      "{% set ns = namespace(s='') %}{% macro m(i) %}[{{ i }}]{% endmacro %}"
      "{% for i in xs %}{% set ns.s = ns.s ~ m(i) %}{% endfor %}{{ ns.s }}",
      "t");
  const TemplateVariables variables =
      template_variables(OrderedJson::parse(R"({"xs": [1, 2, 3]})"));
  std::vector<std::string> texts(8);
  {
    std::vector<std::jthread> threads;
    for (std::string& text : texts)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) text = chat.render(variables).text();
      });
  }
  for (const std::string& text : texts) EXPECT_EQ(text, "[1][2][3]");
}

TEST(TemplateJson, TakesTheLastOfAKeyGivenTwiceAndRefusesWhatDoesNotFit) {
  const TemplateValue value = template_value(R"({"a": 1, "b": 2, "a": 3})", 7, "line 1");
  ASSERT_TRUE(value.is(ValueKind::dict));
  ASSERT_EQ(value.as_dict().entries.size(), 2u);
  EXPECT_EQ(value.as_dict().find("a")->as_integer(), 3);
  EXPECT_EQ(value.as_dict().entries[0].first.as_text().first_origin(), 7u);
  EXPECT_EQ(message_of([] { template_value("18446744073709551615", 1, "line 2"); }),
            "line 2: the integer 18446744073709551615 does not fit into 64 bits");
  EXPECT_NE(message_of([] { template_value("{", 1, "line 3"); }).find("line 3: no JSON"),
            std::string::npos);
  const std::string deep = std::string(300, '[') + std::string(300, ']');
  EXPECT_EQ(message_of([&] { template_value(deep, 1, "line 4"); }),
            "line 4: more than 200 lists and objects within each other");
}

TEST(TemplateValue, FindsKeysOfLargeDicts) {
  TemplateDict dict;
  for (int i = 0; i < 1000; ++i) dict.set("key" + std::to_string(i), TemplateValue::integer(i));
  dict.set("key7", TemplateValue::integer(-7));
  dict.set(TemplateValue::integer(3), TemplateValue::text("three"));
  const TemplateValue value = TemplateValue::dict(std::move(dict));
  EXPECT_EQ(value.as_dict().entries.size(), 1001u);
  EXPECT_EQ(value.as_dict().find("key7")->as_integer(), -7);
  EXPECT_EQ(value.as_dict().find("key999")->as_integer(), 999);
  EXPECT_EQ(value.as_dict().find("key1000"), nullptr);
  EXPECT_EQ(value.as_dict().find(TemplateValue::real(3))->as_text().text(), "three");
}

}  // namespace
}  // namespace rankine::test
