#include "support/template_cases.h"

// Every construct of tests/support/templates/constructs.txt against what Debian's jinja2, the
// reference, gave for it; the file names those in which npm's @huggingface/jinja differs.
namespace rankine::test {
namespace {

TEST(TemplateConstructs, GiveWhatJinjaGives) {
  const OrderedJson expected = template_file("expected.json");
  const OrderedJson variables = template_file("variables.json");
  size_t alike_in_all = 0, refused = 0;
  for (const OrderedJson& entry : expected) {
    const std::string text = entry.at("template");
    const OrderedJson result = template_result(text, variables);
    EXPECT_TRUE(template_results_agree(result, entry.at("jinja2")))
        << text << "\n  jinja2: " << entry.at("jinja2") << "\n  here:   " << result;
    alike_in_all += entry.contains("huggingface") ? 0 : 1;
    refused += result.contains("error") ? 1 : 0;
  }
  EXPECT_GE(expected.size(), 500u);
  EXPECT_GE(alike_in_all, 200u);
  EXPECT_GE(refused, 35u);
}

TEST(TemplateConstructs, StandInTheFileOfExpectedResults) {
  std::string constructs;
  for (const OrderedJson& entry : template_file("expected.json"))
    constructs += (constructs.empty() ? "" : "\n=====\n") + entry.at("template").get<std::string>();
  EXPECT_EQ(read_text(template_folder() / "constructs.txt"), constructs + "\n")
      << "run make_expected.py";
}

}  // namespace
}  // namespace rankine::test
