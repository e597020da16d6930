#include <gtest/gtest.h>

#include "base/file.h"
#include "base/options.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using test::message_of;

struct Values {
  int64_t steps = 200;
  double lr = 1;
  std::string name;
};

OptionTable table_of(Values& v) {
  OptionTable table;
  table.integer({"steps"}, &v.steps, "");
  table.real({"lr"}, &v.lr, "");
  table.text({"name"}, &v.name, "");
  return table;
}

TEST(GivenOptions, AreThoseOfTheCommandLineAndWhatAFileChanges) {
  const test::TemporaryFolder folder;
  const std::string text = "steps = 200\nlr = 2\n";
  const std::string config = folder.write("c.toml", text).string();
  for (const OptionOrigin origin : {OptionOrigin::file, OptionOrigin::stored}) {
    Values v;
    OptionTable table = table_of(v);
    if (origin == OptionOrigin::file)
      parse_options(table, {"--config", config, "--name", ""});
    else
      parse_options(table, {"--name", ""}, {text, "stored"});
    EXPECT_EQ(v.lr, 2);
    EXPECT_FALSE(table.given("steps")) << "a file that names the default";
    EXPECT_TRUE(table.given("name")) << "the command line, whatever it says";
    EXPECT_EQ(table.given("lr"), origin == OptionOrigin::file) << "a run's own file asks nothing";
    EXPECT_EQ(table.origin("lr"), origin);
  }
}

TEST(GivenOptions, WithoutEffectAreRefusedTogether) {
  Values v;
  OptionTable table = table_of(v);
  parse_options(table, {"--steps", "200", "--name", "x"});
  EXPECT_NO_THROW(refuse_without_effect(table, {"lr", "no-such-option"}, "here"));
  EXPECT_EQ(message_of([&] {
              refuse_without_effect(table, {"lr", "name"}, "on text");
            }),
            "--name has no effect on text; leave it out");
  EXPECT_EQ(message_of([&] {
              refuse_without_effect(table, {"steps", "lr", "name"}, "here");
            }),
            "--steps, --name have no effect here; leave them out");
}

TEST(StoredOptions, FillTheVariablesThatTheTableHas) {
  Values v;
  OptionTable table = table_of(v);
  read_stored("steps = 7  # default\nother = [1, 2]\nname = \"n\"\n", table);
  EXPECT_EQ(v.steps, 7);
  EXPECT_EQ(v.lr, 1);
  EXPECT_EQ(v.name, "n");
  EXPECT_NE(message_of([&] { read_stored("lr = fast\n", table); }).find("line 1"),
            std::string::npos);
}

}  // namespace
}  // namespace rankine
