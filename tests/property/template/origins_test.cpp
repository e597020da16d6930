#include "support/template_cases.h"

// Every character that a person wrote keeps their number, whatever a template does with it; what
// the template wrote has 0. Here people write small letters q-z and signs that no template below
// has, so that each character of the result tells whose it must be.
namespace rankine::test {
namespace {

constexpr uint32_t person = 5;

// In no template below, and nothing that an operation makes of itself.
bool is_persons(unsigned char byte) {
  return byte >= 0x80 || (byte >= 'q' && byte <= 'z');
}

OrderedJson written() {
  return {{"s", "qrst uvwx\nyz  qqé東ß zz"},
          {"t", "zyx"},
          {"e", ""},
          {"l", {"qq", "zz", "rr"}},
          {"d", {{"qk", "zv"}, {"rk", {"yy", "xx"}}}},
          {"m", {{{"role", "user"}, {"content", "uvw"}}, {{"role", "zzz"}, {"content", "qrs"}}}}};
}

MarkedText rendered(const std::string& text) {
  return Template::parse(text, "t").render(template_variables(written(), person));
}

void expect_persons_own(const std::string& text) {
  MarkedText result;
  try {
    result = rendered(text);
  } catch (const Error& error) {
    FAIL() << text << ": " << error.what();
  }
  size_t at = 0;
  for (const TextSpan& span : result.spans()) {
    EXPECT_GT(span.bytes, 0u);
    for (const size_t end = at + span.bytes; at < end; ++at) {
      const auto byte = static_cast<unsigned char>(result.text()[at]);
      if (is_persons(byte)) {
        EXPECT_EQ(span.origin, person) << text << " gives '" << result.text() << "', byte " << at;
      }
    }
  }
  EXPECT_EQ(at, result.size()) << text;
}

const std::vector<std::string> operations = {"s",
                                             "s ~ t",
                                             "s + t",
                                             "'A' + s + 'B'",
                                             "'A' ~ l ~ 'B'",
                                             "s * 3",
                                             "3 * t",
                                             "s[1]",
                                             "s[-1]",
                                             "s[2:9]",
                                             "s[::-1]",
                                             "s[::2]",
                                             "s[9:1:-3]",
                                             "s[-4:]",
                                             "l",
                                             "d",
                                             "l + l",
                                             "l * 2",
                                             "l[1:]",
                                             "l[::-1]",
                                             "d.qk",
                                             "d['rk']",
                                             "d.items()",
                                             "d.keys()",
                                             "d.values()",
                                             "d.items()|list",
                                             "m",
                                             "m[0].content",
                                             "(s, t)",
                                             "[s, [t]]",
                                             "{'A': s}",
                                             "{s: 1}",
                                             "'%s' % s",
                                             "'A%9sB' % t",
                                             "'%s%r' % (s, l)",
                                             "'%(A)s' % {'A': s}",
                                             "'%-12s|' % t",
                                             "'%.2s' % s",
                                             "s % ()",
                                             "'{}'.format(s)",
                                             "'{:>12}{!r}'.format(t, s)",
                                             "'{A[0]}'.format(A=l)",
                                             "s.format()",
                                             "'{:.2}'.format(s)",
                                             "s.upper()",
                                             "s.lower()",
                                             "s.title()",
                                             "s.capitalize()",
                                             "s.strip()",
                                             "s.strip('q')",
                                             "s.lstrip('q')",
                                             "s.rstrip('z')",
                                             "s.split()",
                                             "s.split('v')",
                                             "s.split(' ', 1)",
                                             "s.rsplit()",
                                             "s.rsplit(' ', 1)",
                                             "s.splitlines()",
                                             "s.splitlines(true)",
                                             "s.partition('v')",
                                             "s.rpartition('q')",
                                             "s.replace('q', 'A')",
                                             "s.replace('v', t)",
                                             "s.replace('', t)",
                                             "'ABAB'.replace('B', s)",
                                             "s.join(['A', 'B'])",
                                             "'A'.join(l)",
                                             "s.join(l)",
                                             "t.center(9)",
                                             "t.center(9, 'A')",
                                             "t.ljust(9)",
                                             "t.rjust(9)",
                                             "t.zfill(9)",
                                             "'A'.center(9, t[0])",
                                             "s.removeprefix('q')",
                                             "s.removesuffix('z')",

                                             "l.copy()",
                                             "d.get('qk')",
                                             "d.get('A', s)",
                                             "s|upper",
                                             "s|lower",
                                             "s|title",
                                             "s|capitalize",
                                             "s|trim",
                                             "s|trim('q')",
                                             "s|string",
                                             "s|safe",
                                             "s|e",
                                             "s|forceescape",
                                             "(s|e) + t",
                                             "t + (s|safe)",
                                             "d|xmlattr",
                                             "s|replace('q', t)",
                                             "t|center",
                                             "'%s'|format(s)",
                                             "s|format",
                                             "s|indent",
                                             "s|indent(2, true)",
                                             "s|indent(t)",
                                             "s|truncate(9)",
                                             "s|truncate(9, true, t)",
                                             "s|tojson",
                                             "d|tojson",
                                             "m|tojson",
                                             "m|tojson(indent=2)",
                                             "s|tojson(true)",
                                             "l|tojson(separators=(',', ':'))",
                                             "s|urlencode",
                                             "{'A': t}|urlencode",
                                             "l|batch(2)|list",
                                             "l|batch(2, t)|list",
                                             "l|slice(2, t)|list",
                                             "l|first",
                                             "l|last",
                                             "s|first",
                                             "s|last",
                                             "l|join",
                                             "l|join(t)",
                                             "'AB'|join(t)",
                                             "m|join(',', 'content')",
                                             "l|list",
                                             "s|list",
                                             "l|max",
                                             "l|min",
                                             "l|reverse|list",
                                             "s|reverse",
                                             "l|sort",
                                             "l|unique|list",
                                             "l|map('upper')|list",
                                             "m|map(attribute='content')|list",
                                             "l|select|list",
                                             "l|reject('none')|list",
                                             "m|selectattr('role')|list",
                                             "d|dictsort",
                                             "d|items|list",
                                             "m|groupby('role')",
                                             "l|sum(start=[])|list if false else s",
                                             "s|default('A')",
                                             "nothing|default(s)",
                                             "s if true",
                                             "nothing or s",
                                             "s and t",
                                             "namespace(A=s).A",
                                             "namespace(A=s)",
                                             "dict(A=s)",
                                             "dict(d)",
                                             "cycler(s).next()",
                                             "joiner(s) and t",
                                             "s|attr('upper')() if false else s",
                                             "(l|map('string')|list)"};

TEST(Origins, AreKeptByEveryOperation) {
  for (const std::string& operation : operations) expect_persons_own("{{ " + operation + " }}");
}

TEST(Origins, AreKeptByTwoOperationsInARow) {
  const std::vector<std::string> second = {
      "|string|upper|lower", "|string|reverse", "|tojson",   "|string|replace('A', 'B')",
      "|string|trim('[')",   "|string|indent",  "|string|e", "|list|string",
      "|string|title|lower"};
  for (const std::string& operation : operations)
    for (const std::string& next : second) {
      if (next == "|list|string" && operation.find("namespace(A=s)") == 0) continue;
      if (next == "|tojson" &&
          (operation.find(".items()") != std::string::npos ||
           operation.find(".keys()") != std::string::npos ||
           operation.find(".values()") != std::string::npos || operation == "namespace(A=s)"))
        continue;  // JSON cannot hold these
      expect_persons_own("{{ (" + operation + ")" + next + " }}");
    }
}

TEST(Origins, AreKeptByStatements) {
  for (const std::string text :
       {"{% for c in s %}{{ c }}{{ loop.previtem }}{{ loop.nextitem }}{% endfor %}",
        "{% for k, v in d.items() %}{{ k }}A{{ v }}{% endfor %}",
        "{% set x = s %}{{ x }}{% set A, B = l[:2] %}{{ A }}{{ B }}",
        "{% set x %}A{{ s }}B{% endset %}{{ x }}",
        "{% set x | upper | lower %}{{ s }}{% endset %}{{ x }}",
        "{% macro A(B, C=s) %}{{ B }}{{ C }}{{ caller() }}{% endmacro %}{% call A(t) %}{{ l }}{% "
        "endcall %}",
        "{% macro A() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ A(s, B=t) }}",
        "{% filter upper %}{{ s }}{% endfilter %}", "{% with A = s %}{{ A ~ t }}{% endwith %}",
        "{% generation %}{{ s }}{% endgeneration %}",
        "{% for x in [[s, [t]]] recursive %}{% if x is string %}{{ x }}{% else %}{{ loop(x) }}{% "
        "endif %}{% endfor %}",
        "{% set A = namespace(B='') %}{% for c in s %}{% set A.B = c ~ A.B %}{% endfor %}{{ A.B "
        "}}"})
    expect_persons_own(text);
}

// What has a structure takes the origin of what is in it, so that "[" or "{" of a list that a
// person wrote is not the template's.
TEST(Origins, OfStructureAreThoseOfTheContents) {
  for (const std::string expression :
       {"l", "d|tojson", "m|tojson(indent=1)", "l|string", "d.items()", "'%s' % d",
        "'{}'.format(l)", "l|map('upper')|list"}) {
    const MarkedText text = rendered("{{ " + expression + " }}");
    ASSERT_EQ(text.spans().size(), 1u) << expression;
    EXPECT_EQ(text.spans()[0].origin, person) << expression;
  }
  EXPECT_EQ(rendered("{{ [1, 'A'] }}").first_origin(), 0u);
  TemplateVariables variables;  // without any text in them
  variables.values["x"] = template_value("[1, null, {}, 2.5]", person, "x");
  for (const std::string expression :
       {"x", "x[0]", "x[2]", "x|tojson", "x[0] + 1", "-x[0]", "x[3]|round"}) {
    const MarkedText text = Template::parse("{{ " + expression + " }}", "t").render(variables);
    ASSERT_EQ(text.spans().size(), 1u) << expression;
    EXPECT_EQ(text.spans()[0].origin, person) << expression;
  }
}

TEST(Origins, TellMessagesApart) {
  TemplateVariables variables;
  variables.values["messages"] =
      TemplateValue::list({template_value(R"({"content": "one"})", 1, "a"),
                           template_value(R"({"content": "two"})", 2, "b")});
  const MarkedText text =
      Template::parse("{{ messages|map(attribute='content')|join('<|x|>') }}", "t")
          .render(variables);
  const std::vector<TextSpan> expected = {{3, 1, false}, {5, 0, false}, {3, 2, false}};
  EXPECT_EQ(text.text(), "one<|x|>two");
  EXPECT_EQ(text.spans(), expected);
}

}  // namespace
}  // namespace rankine::test
