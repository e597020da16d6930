#include "support/errors.h"
#include "support/template_cases.h"

// Whatever a template does, its work, its memory and its depth stay bounded, and the error names
// the limit.
namespace rankine::test {
namespace {

// Small, so that reaching them takes no time.
constexpr TemplateLimits small{.steps = 2'000'000, .memory_bytes = 8 << 20};

std::string message(const std::string& text, const TemplateLimits& limits = small) {
  return message_of([&] {
    Template::parse(text, "t").render(template_variables(OrderedJson::object()), limits);
  });
}

std::string repeated(const std::string& part, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += part;
  return all;
}

void expect_in(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(TemplateLimits, BoundMemory) {
  for (const std::string expression :
       {"'a' * 10**9 * 100", "[1] * 10**15", "'%1000000000s' % 'x' * 9", "'x'.center(10**12)",
        "'x'.zfill(10**12)", "'{:1000000000}'.format('x') * 9", "'a'|indent(10**12)",
        "'a'|center(10**12)", "[1]|batch(10**12, 0)|list", "[1]|slice(10**12)|list",
        "[1]|tojson(indent=10**12)"})
    expect_in(message("{{ " + expression + " }}"), "bytes");
  expect_in(message("{% set ns = namespace(s='aa') %}{% for i in range(99) %}"
                    "{% set ns.s = ns.s ~ ns.s %}{% endfor %}"),
            "the template makes more than 8388608 bytes of texts and lists");
  expect_in(message("{% set ns = namespace(s=[1]) %}{% for i in range(99) %}"
                    "{% set ns.s = ns.s + ns.s %}{% endfor %}"),
            "the template makes more than");
  // A small value that prints as a large one.
  expect_in(message("{% set ns = namespace(s=['a']) %}{% for i in range(60) %}"
                    "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}"),
            "more than");
}

TEST(TemplateLimits, BoundSteps) {
  const TemplateLimits limits{.steps = 100'000};
  const std::string loops =
      "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}";
  expect_in(message(loops, limits), "the template takes more than 100000 steps");
  expect_in(
      message("{% set x = 'ab' * 50000 %}{% for i in range(1000) %}{{ 'c' in x }}{% endfor %}",
              limits),
      "steps");
  expect_in(message("{% set ns = namespace(s=[1]) %}{% for i in range(40) %}"
                    "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s == ns.s[:] }}",
                    limits),
            "steps");
  expect_in(message("{{ range(10**12) }}"), "'range' of more than 100000 items");
}

TEST(TemplateLimits, BoundOutput) {
  expect_in(message("{% for i in range(100) %}0123456789{% endfor %}", {.output_bytes = 500}),
            "more than 500 bytes are written");
}

TEST(TemplateLimits, BoundDepth) {
  expect_in(message("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "within each other");
  expect_in(message("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
            "within each other");
  expect_in(message("{% set ns = namespace(s=[]) %}{% for i in range(5000) %}"
                    "{% set ns.s = [ns.s] %}{% endfor %}"),
            "lists and dicts within each other");
  expect_in(message("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}"), "within each other");
  expect_in(
      message("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = [b] %}{{ a }}"),
      "within each other");
}

TEST(TemplateLimits, BoundNestingInTheText) {
  const size_t many = 20'000;
  const auto closed = [&](const std::string& open, const std::string& close) {
    return "{{ " + repeated(open, many) + "1" + repeated(close, many) + " }}";
  };
  for (const std::string& text :
       {closed("(", ")"), closed("[", "]"), closed("{1:", "}"), closed("- ", ""),
        closed("not ", ""), closed("a(", ")"), closed("a[", "]"), closed("1 if 1 else ", ""),
        closed("1 is eq [", "]"), repeated("{% if 1 %}", many)})
    expect_in(message(text), "within each other");
  for (const std::string part :
       {"+1", ".a", "[0]", "()", "|e", "**1", " or 1", " and 1", " is none"})
    expect_in(message("{{ 1" + repeated(part, 5000) + " }}"), "'t': line 1");
  std::string names;
  for (int i = 0; i < 2000; ++i) names += "{{ n" + std::to_string(i) + " }}";
  expect_in(message(names), "more than 1000 names");
  expect_in(message(repeated("text ", 100'000)), "a template of 500000 bytes");
}

TEST(TemplateLimits, LeaveNothingBehindThatRefersToItself) {
  const std::string text =
      "{% set ns = namespace() %}{% set ns.me = ns %}{% macro m() %}{{ ns.me is defined }}{% "
      "endmacro %}"
      "{% set ns.m = m %}{% for x in [ns] %}{% set ns.loop = loop %}{% macro n() %}{{ m() }}{% "
      "endmacro %}"
      "{% set ns.n = n %}{{ ns.n() }}{% endfor %}";
  EXPECT_EQ(Template::parse(text, "t").render({}).text(), "True");  // and no leak, under ASan
}

}  // namespace
}  // namespace rankine::test
