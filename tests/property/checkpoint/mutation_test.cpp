#include <gtest/gtest.h>

#include <random>

#include "checkpoint/hf_config.h"
#include "checkpoint/hf_source.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "support/tiny_models.h"

// The parsers of foreign files on thousands of damaged inputs: they return or throw Error{data}.
namespace rankine {
namespace {

using Random = std::mt19937_64;

std::string mutated(Random& random, std::string text) {
  static constexpr std::string_view words[] = {
      "null", "-1",   "1e999", "18446744073709551615", "[", "]", "{", "}", "\"", ",", ":",
      "0",    "true", "\xff"};
  for (uint64_t edits = 1 + random() % 4; edits > 0 && !text.empty(); --edits) {
    const size_t at = random() % text.size();
    const size_t length = std::min<size_t>(1 + random() % 8, text.size() - at);
    switch (random() % 5) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), 1 + random() % 40));
        break;
      case 3:
        text.replace(at, length, words[random() % std::size(words)]);
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

template <class Parse>
void survive(const std::string& good, uint64_t seed, Parse&& parse) {
  ASSERT_NO_THROW(parse(good));
  Random random(seed);
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = mutated(random, good);
    try {
      parse(text);
    } catch (const Error& error) {
      ++refused;
      ASSERT_EQ(error.kind(), ErrorKind::data)
          << "seed " << seed << " input " << i << ": " << error.what();
      ASSERT_FALSE(std::string(error.what()).empty());
    }
  }
  EXPECT_GT(refused, 1000) << "the damage does no harm, seed " << seed;
}

TEST(Mutations, SafetensorsHeader) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  file += header + std::string(32, 'x');
  survive(file, 11,
          [](const std::string& text) { parse_safetensors_header(text, text.size(), "f"); });
}

TEST(Mutations, HfConfig) {
  uint64_t seed = 20;
  for (const test::TinyModel& model : test::tiny_models())
    survive(hf_config_text(model.config, DType::f32), ++seed,
            [](const std::string& text) { parse_hf_config(text, "c"); });
}

TEST(Mutations, HfIndex) {
  survive(
      R"({"metadata":{"total_size":12},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}})",
      31, [](const std::string& text) { parse_hf_index(text, "i"); });
}

TEST(Mutations, Manifest) {
  Manifest m;
  m.tensors = {{"weights/a", DType::f32, {4, 6}}, {"weights/b", DType::bf16, {3}}};
  m.files = {{"rank-00000.safetensors",
              100,
              1,
              {{"weights/a", {{0, 0}, {4, 2}}}, {"weights/b", {{0}, {3}}}}},
             {"rank-00001.safetensors", 80, 2, {{"weights/a", {{0, 2}, {4, 6}}}}}};
  // Without its checksum, which would refuse all of them alike.
  std::string text = manifest_text(m);
  text = text.substr(0, text.rfind(",\n\"checksum\"")) + "\n}\n";
  text.replace(text.find("\"version\":2"), 11, "\"version\":1");
  survive(text, 41, [](const std::string& damaged) { parse_manifest(damaged, "m"); });
}

}  // namespace
}  // namespace rankine
