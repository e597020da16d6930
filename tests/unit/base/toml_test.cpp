#include "base/toml.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace rankine {
namespace {

using Texts = std::vector<std::string>;

TEST(Toml, ReadsValuesCommentsAndArrays) {
  const TomlText toml = read_toml(
      "\xEF\xBB\xBF# first\r\n"
      "a = 1 # one\r\n"
      "b_c-d=\"x # \\\"y\\\" \\\\ \\u00e9\\U0001F600\"\n"
      "  c = 'C:\\dir' \n"
      "\n"
      "list = [ 1_000, # thousand\n  +2.5e-3 ,\n\n \"x\", ]\n"
      "none = []\n"
      "t = true\nf = -inf");
  ASSERT_TRUE(toml.faults.empty()) << toml.faults[0].text;
  ASSERT_EQ(toml.entries.size(), 7U);
  EXPECT_EQ(toml.entries[0].values, Texts{"1"});
  EXPECT_EQ(toml.entries[1].key, "b_c-d");
  EXPECT_EQ(toml.entries[1].values, Texts{"x # \"y\" \\ é😀"});
  EXPECT_EQ(toml.entries[2].values, Texts{"C:\\dir"});
  EXPECT_EQ(toml.entries[3].values, (Texts{"1_000", "+2.5e-3", "x"}));
  EXPECT_TRUE(toml.entries[3].is_array);
  EXPECT_EQ(toml.entries[4].line, 10);
  EXPECT_TRUE(toml.entries[4].values.empty());
  EXPECT_EQ(toml.entries[6].values, Texts{"-inf"});
}

TEST(Toml, SkipsFaultyLinesAndGoesOn) {
  const TomlText toml = read_toml(
      "[section]\n= 1\nx 1\nx =\nx = \"open\nx = 1 2\nx = word\nx = \"\\q\"\nx = \"\\u12\"\n"
      "x = \"\\ud800\"\nx = '''a'''\nx = [1 2]\nx = 'open\nok = 1\nx = [1,\n2");
  ASSERT_EQ(toml.entries.size(), 1U);
  EXPECT_EQ(toml.entries[0].key, "ok");
  EXPECT_EQ(toml.entries[0].line, 14);
  ASSERT_EQ(toml.faults.size(), 14U);
  for (int i = 0; i < 13; ++i) EXPECT_EQ(toml.faults[static_cast<size_t>(i)].line, i + 1);
}

TEST(Toml, StringsSurvive) {
  for (uint64_t i = 0; i < 500; ++i) {
    std::string text;
    const size_t length = philox({1, 2}, i)[0] % 20;
    for (size_t j = 0; j < length; ++j)
      text += static_cast<char>(philox({3, 4}, i, j)[0] % (i % 2 == 0 ? 256 : 48));
    const TomlText toml = read_toml("x = " + toml_string(text));
    ASSERT_TRUE(toml.faults.empty()) << "round " << i << ": " << toml.faults[0].text;
    ASSERT_EQ(toml.entries.at(0).values, Texts{text}) << "round " << i;
  }
}

}  // namespace
}  // namespace rankine
