#include "library/text_bounds.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/generation_settings.h"
#include "support/errors.h"

namespace rankine {
namespace {

using Json = nlohmann::json;
using Ends = std::vector<int32_t>;

TEST(TextBounds, EverythingThatEndsATextCountsOnce) {
  ModelConfig config;
  config.vocabulary = 300;
  config.eos = 7;
  config.more_eos = {8};
  const std::vector<int64_t> generation{8, 9, 400};
  const TextTokenizer bytes = TextTokenizer::bytes();
  const TextBounds all = text_bounds({config, generation, &bytes, 9});
  EXPECT_EQ(all.ends, (Ends{7, 8, 9, 256}));
  EXPECT_EQ(all.document_end, 256);
  EXPECT_TRUE(all.begin.empty());
  const TextBounds ids = text_bounds({config, {}, nullptr});
  EXPECT_EQ(ids.ends, (Ends{7, 8}));
  EXPECT_EQ(ids.document_end, 7);
  EXPECT_EQ(to_string(ids, nullptr),
            "begins with no token of its own, documents end with token 7, generation ends at token "
            "7, token 8");
  config.eos = 256;
  config.more_eos.clear();
  EXPECT_EQ(to_string(text_bounds({config, {}, &bytes}), &bytes),
            "begins with no token of its own, documents end with '<|endoftext|>' (256), generation "
            "ends at '<|endoftext|>' (256)");
  config.eos = -1;
  EXPECT_TRUE(text_bounds({config, {}, nullptr}).ends.empty());
}

TEST(TextBounds, WhatIsTaughtIsAdded) {
  ModelConfig config;
  add_ends(config, Ends{5, 6, 5, -1});
  EXPECT_EQ(config.eos, 5);
  EXPECT_EQ(config.more_eos, (std::vector<int64_t>{6}));
}

TEST(GenerationSettings, CarriesEverythingAndAddsEnds) {
  const std::string text =
      R"({"eos_token_id": 2, "temperature": 0.6, "top_p": 0.9, "top_k": 20, "do_sample": true, "x": [1]})";
  const Json added = Json::parse(with_ends(text, Ends{2, 7}, "f"));
  EXPECT_EQ(added.at("eos_token_id"), Json({2, 7}));
  EXPECT_EQ(added.at("x"), Json({1}));
  EXPECT_EQ(with_ends(text, Ends{2}, "f"), text);
  EXPECT_EQ(with_ends("", Ends{2}, "f"), "");
  EXPECT_EQ(Json::parse(with_ends("{}", Ends{7}, "f")).at("eos_token_id"), Json(7));
  const GenerationSettings settings = parse_generation_settings(text, "f");
  EXPECT_EQ(settings.temperature, 0.6);
  EXPECT_EQ(settings.top_p, 0.9);
  EXPECT_EQ(settings.top_k, 20);
  EXPECT_EQ(settings.do_sample, true);
  EXPECT_FALSE(parse_generation_settings("{\"top_p\": null}", "f").top_p.has_value());
  for (const char* bad : {"{", "{\"top_p\": 2}", "{\"temperature\": -1}", "{\"top_k\": 0.5}"})
    EXPECT_EQ(test::error_of([&] { parse_generation_settings(bad, "f"); }).kind(), ErrorKind::data)
        << bad;
}

}  // namespace
}  // namespace rankine
