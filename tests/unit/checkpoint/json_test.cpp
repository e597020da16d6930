#include "checkpoint/json.h"

#include "support/errors.h"

namespace rankine {
namespace {

using test::message_of;

std::string refusal(const std::string& text) {
  return message_of([&] { parse_json(text, "file.json"); });
}

TEST(ParseJson, TheLastOfRepeatedKeysCountsWhereItIsAskedFor) {
  const char* text = R"({"a": 1, "b": {"c": 1, "c": 2}, "a": 3})";
  EXPECT_EQ(parse_json(text, "line", RepeatedKeys::last_counts),
            nlohmann::json::parse(R"({"a": 3, "b": {"c": 2}})"));
  EXPECT_NE(test::message_of([&] { parse_json(text, "line"); }).find("occurs twice"),
            std::string::npos);
}

TEST(Json, ParsesOrdinaryText) {
  EXPECT_EQ(parse_json(R"( {"a": [1, -2, 3.5, "x", null, true]} )", "t")["a"].size(), 6u);
}

TEST(Json, RefusesWithThePlaceInTheMessage) {
  EXPECT_NE(refusal(R"({"a": 1, "a": 1})").find("\"a\" occurs twice"), std::string::npos);
  EXPECT_NE(refusal(R"([{"k": {"a": 1, "b": 2, "a": 1}}])").find("occurs twice"),
            std::string::npos);
  EXPECT_NE(refusal("{\"a\": NaN}").find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1e999}").find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("{} {}").find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("").find("file.json"), std::string::npos);
  EXPECT_NE(refusal("\"\xff\"").find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(std::string("{}\0{}", 5)).find("NUL byte at offset 2"), std::string::npos);
}

TEST(Json, LimitsDepthButNotLength) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_json(nested(60), "t"));
  EXPECT_NE(refusal(nested(100'000)).find("levels deep"), std::string::npos);
  std::string wide = "[0";
  for (int i = 0; i < 10'000; ++i) wide += ",0";
  EXPECT_NO_THROW(parse_json(wide + "]", "t"));
}

TEST(Json, ReadsMembersWithChecks) {
  const auto root =
      parse_json(R"({"n": 7, "big": 18446744073709551615, "f": 1.5, "s": "x", "z": null})", "t");
  const JsonObject object(root, "t");
  EXPECT_EQ(object.integer("n", 0, 7), 7);
  EXPECT_EQ(object.maybe_integer("z", 0, 7), std::nullopt);
  EXPECT_EQ(object.number_or("f", 0), 1.5);
  EXPECT_EQ(object.text_or("none", "y"), "y");
  EXPECT_EQ(message_of([&] { object.integer("n", 0, 6); }), "t: 'n' is 7, it must lie in 0..6");
  EXPECT_EQ(message_of([&] { object.integer("big", 0, 6); }),
            "t: 'big' must be an integer, not 18446744073709551615");
  EXPECT_EQ(message_of([&] { object.integer("f", 0, 6); }), "t: 'f' must be an integer, not 1.5");
  EXPECT_EQ(message_of([&] { object.at("z"); }), "t lacks 'z'");
  EXPECT_EQ(message_of([&] { object.flag_or("s", true); }),
            "t: 's' must be true or false, not \"x\"");
}

}  // namespace
}  // namespace rankine
