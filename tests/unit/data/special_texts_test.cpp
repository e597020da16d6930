#include "data/tokenizer/special_texts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/byte_tokenizer.h"
#include "data/text_tokenizer.h"
#include "data/tokenizer/byte_alphabet.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// Which tokens begin and end texts, whatever file says it.
namespace rankine {
namespace {

using Json = nlohmann::json;
using test::TemporaryFolder;

SpecialTexts texts(const std::string& config, const std::string& map = "",
                   const std::string& assumed = "") {
  return special_texts({config, map}, "folder", assumed);
}

TEST(SpecialTexts, TheConfigurationGoesFirstThenTheMapThenTheClass) {
  const std::string llama = R"({"tokenizer_class": "LlamaTokenizerFast"})";
  EXPECT_EQ(texts(llama).begin, "<s>");
  EXPECT_EQ(texts(llama).end, "</s>");
  EXPECT_EQ(texts(llama, R"({"eos_token": "<end>"})").end, "<end>");
  EXPECT_EQ(texts(R"({"eos_token": {"content": "<e>"}})", R"({"eos_token": "<end>"})").end, "<e>");
  // Null says that there is none; silence says nothing.
  EXPECT_EQ(texts(R"({"tokenizer_class": "GPT2Tokenizer", "bos_token": null})").begin, "");
  EXPECT_EQ(texts(R"({"tokenizer_class": "GPT2Tokenizer"})").begin, "<|endoftext|>");
  EXPECT_FALSE(texts(R"({"model_max_length": 1024})").known);
  EXPECT_TRUE(texts(R"({"model_max_length": 1024})", "", "GPT2Tokenizer").known);
  EXPECT_EQ(texts("", "", "GPT2Tokenizer").end, "<|endoftext|>");
  EXPECT_EQ(texts(R"({"tokenizer_class": "Qwen2Tokenizer"})").end, "<|endoftext|>");
  EXPECT_EQ(texts(R"({"tokenizer_class": "Qwen2Tokenizer"})").begin, "");
  EXPECT_EQ(texts(R"({"add_bos_token": true})").adds_begin, true);
  EXPECT_FALSE(texts(R"({"add_bos_token": null})").adds_begin.has_value());
}

TEST(SpecialTexts, DamageNamesTheFile) {
  const auto fault = [](const std::string& config, const std::string& map) {
    return test::message_of([&] { texts(config, map); });
  };
  EXPECT_NE(fault("{", "").find("folder/tokenizer_config.json"), std::string::npos);
  EXPECT_NE(fault("", "[]").find("folder/special_tokens_map.json"), std::string::npos);
}

// GPT-2's own three files, as they are published.
TEST(SpecialTexts, VocabularyFilesAreGpt2s) {
  const TemporaryFolder folder;
  Json vocabulary;
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[to_printable(std::string(1, static_cast<char>(byte)))] = byte;
  vocabulary["<|endoftext|>"] = 256;
  folder.write("vocab.json", vocabulary.dump());
  folder.write("merges.txt", "#version: 0.2\n");
  folder.write("tokenizer_config.json", R"({"model_max_length": 1024})");
  const TextTokenizer tokenizer = TextTokenizer::open(folder.path());
  EXPECT_EQ(tokenizer.end_token(), 256);
  EXPECT_EQ(tokenizer.bpe().special().begin, 256);
  EXPECT_TRUE(tokenizer.bpe().begins().empty());
}

TextTokenizer with_s(const std::string& config, const Json& post_processor = nullptr) {
  Json json = Json::parse(byte_tokenizer_json());
  for (const auto& [id, content] : {std::pair{257, "<s>"}, {258, "</s>"}}) {
    Json token = json.at("added_tokens").at(0);
    token["id"] = id;
    token["content"] = content;
    json.at("added_tokens").push_back(token);
  }
  json["post_processor"] = post_processor;
  return TextTokenizer::parse(json.dump(), config, "s");
}

const Json puts_s = {
    {"type", "TemplateProcessing"},
    {"single",
     {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
      {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
    {"pair",
     {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
      {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
    {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {257}}, {"tokens", {"<s>"}}}}}}};

TEST(SpecialTexts, TextsBeginAsTheTokenizerBeginsThem) {
  const std::string names = R"({"bos_token": "<s>", "eos_token": "</s>"})";
  const std::string adds = R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true})";
  const std::string no = R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": false})";
  EXPECT_EQ(with_s(names).bpe().begins(), TokenIds{});
  EXPECT_EQ(with_s(names, puts_s).bpe().begins(), TokenIds{257});
  EXPECT_EQ(with_s(adds).bpe().begins(), TokenIds{257});
  EXPECT_EQ(with_s(adds, puts_s).bpe().begins(), TokenIds{257});
  EXPECT_EQ(with_s(no, puts_s).bpe().begins(), TokenIds{});
  EXPECT_EQ(with_s(adds).bpe().encode("a", {.add_special = true}), (TokenIds{257, 'a'}));
}

TEST(SpecialTexts, TheUserDecides) {
  const TextTokenizer own = with_s(R"({"bos_token": "<s>"})", puts_s);
  EXPECT_EQ(own.with_bounds("none", "").bpe().begins(), TokenIds{});
  EXPECT_EQ(own.with_bounds("</s>", "<s>").bpe().begins(), TokenIds({258, 257}));
  EXPECT_EQ(own.with_bounds("</s>", "<s>").end_token(), 257);
  EXPECT_EQ(own.with_bounds("", "a").end_token(), 'a');
  EXPECT_EQ(own.with_bounds("", "").identity(), own.identity());
  // Its files say so, too.
  const TextTokenizer changed = own.with_bounds("none", "</s>");
  const TextTokenizer again = TextTokenizer::parse(changed.file("tokenizer.json"),
                                                   changed.file("tokenizer_config.json"), "again");
  EXPECT_EQ(again.bpe().begins(), TokenIds{});
  EXPECT_EQ(again.end_token(), 258);
  EXPECT_NE(test::message_of([&] { own.with_bounds("<x>", ""); }).find("--begin-token '<x>'"),
            std::string::npos);
}

}  // namespace
}  // namespace rankine
