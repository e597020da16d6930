#include "data/tokenize.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/byte_tokenizer.h"
#include "data/token_source.h"
#include "data/tokenizer/bpe_trainer.h"
#include "support/compressed.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using test::error_of;
using test::message_of;
using test::TemporaryFolder;

TextTokenizer small_tokenizer() {
  BpeTrainer trainer(SplitPattern::gpt2);
  trainer.add("the cat and the dog and the bird and the end of the text");
  return TextTokenizer::parse(trainer.train(280), trainer.config(), "small");
}

TokenizeJob job_of(std::vector<std::filesystem::path> paths, const TextTokenizer& tokenizer) {
  return {.files = list_files(paths, TextOptions{}),
          .text_field = "text",
          .bad_lines = 0.01,
          .tokenizer = tokenizer,
          .end_token = tokenizer.end_token()};
}

TokenFileFacts run(const TokenizeJob& job, const std::filesystem::path& output, int threads = 2) {
  TokenFileWriter writer(output);
  return tokenize(job, writer, threads, [](const TokenizeProgress&) {});
}

TokenIds tokens_of(const std::filesystem::path& file) {
  const TokenData data = TokenData::open({{file, DataFormat::tokens}});
  TokenIds out(data.count());
  data.copy(0, data.count(), out.data());
  return out;
}

TEST(TextTokenizer, BytesAreATokenizerLikeOthers) {
  const TextTokenizer bytes = TextTokenizer::bytes();
  EXPECT_TRUE(bytes.is_bytes());
  EXPECT_EQ(bytes.identity(), "bytes");
  EXPECT_EQ(bytes.vocabulary(), byte_vocabulary);
  EXPECT_EQ(bytes.end_token(), end_of_text_byte_token);
  EXPECT_EQ(bytes.bpe().encode("a\xFF"), (TokenIds{'a', 255}));
  const TemporaryFolder folder;
  folder.write("tokenizer.json", bytes.file("tokenizer.json"));
  EXPECT_TRUE(TextTokenizer::open(folder.path()).is_bytes());
}

TEST(TextTokenizer, KnowsItsEndTokenOrAsksForIt) {
  const TextTokenizer small = small_tokenizer();
  EXPECT_EQ(small.identity().size(), 16U);
  EXPECT_EQ(small.end_token(), 279);
  EXPECT_EQ(small.with_bounds("", "the").end_token(), small.bpe().encode("the").at(0));
  EXPECT_NE(message_of([&] {
              small.with_bounds("", "no such");
            }).find("is no token of the tokenizer of 'small'"),
            std::string::npos);
  nlohmann::json json = nlohmann::json::parse(small.file("tokenizer.json"));
  json["added_tokens"] = nlohmann::json::array();
  const TextTokenizer none = TextTokenizer::parse(json.dump(), "", "none");
  const Error missing = error_of([&] { none.end_token(); });
  EXPECT_EQ(missing.kind(), ErrorKind::data);
  EXPECT_NE(std::string(missing.what()).find("'none'"), std::string::npos) << missing.what();
  EXPECT_EQ(none.with_bounds("", "a").end_token(), none.bpe().encode("a").at(0));
}

TEST(TextTokenizer, CarriesTheFilesBesideIt) {
  const TemporaryFolder folder;
  const TextTokenizer small = small_tokenizer();
  for (const auto& [name, text] : small.files()) folder.write(name, text);
  folder.write("chat_template.jinja", "{{ messages }}");
  const TextTokenizer opened = TextTokenizer::open(folder / "tokenizer.json");
  EXPECT_EQ(opened.identity(), small.identity());
  EXPECT_EQ(opened.files().size(), 3U);
  EXPECT_TRUE(TextTokenizer::lies_in(folder.path()));
  EXPECT_EQ(opened.chat_template().text(), "{{ messages }}");
  EXPECT_EQ(opened.chat_template({.name = "plain", .kwargs = ""}).name(), "plain");
  // One file says all of it, as a token file has room for.
  const TextTokenizer again =
      TextTokenizer::parse(opened.file("tokenizer.json"), opened.whole_config(), "again");
  EXPECT_EQ(again.chat_template().text(), "{{ messages }}");
  EXPECT_EQ(again.end_token(), opened.end_token());
  EXPECT_NE(message_of([&] { TextTokenizer::open(folder / "absent"); }).find("does not exist"),
            std::string::npos);
}

TEST(Tokenize, GivesEachDocumentsIdsAndAnEndToken) {
  const TemporaryFolder folder;
  const TextTokenizer small = small_tokenizer();
  const std::vector<std::string> documents{"the cat and the dog", "the end\n", "<|endoftext|> x",
                                           "fish \xEF\xBF\xBD"};
  std::string lines = "\n{\"id\": 3, \"text\": \"the end\\n\"}\r\n{\"text\": \"\"}\n";
  lines += "{\"text\": \"<|endoftext|> x\", \"meta\": {\"text\": 1}}";
  const TokenizeJob job =
      job_of({folder.write("a.txt", documents[0]), folder.write("b.txt", ""),
              folder.write("c.jsonl.gz", test::gzip(lines)), folder.write("d.txt", "fish \xFF")},
             small);
  const TokenFileFacts facts = run(job, folder / "out");
  TokenIds expected;
  for (const std::string& document : documents) {
    const TokenIds ids = small.bpe().encode(document);
    expected.insert(expected.end(), ids.begin(), ids.end());
    expected.push_back(279);
  }
  EXPECT_EQ(tokens_of(folder / "out"), expected);
  EXPECT_EQ(facts.documents, 4U);
  EXPECT_EQ(facts.tokens, expected.size());
  const TokenData data = TokenData::open({{folder / "out", DataFormat::tokens}});
  EXPECT_EQ(data.warnings(), (std::vector<std::string>{"1 places that are not UTF-8 became U+FFFD",
                                                       "1 empty documents are left out",
                                                       "1 empty files are left out"}));
  EXPECT_EQ(data.facts()->tokenizer_json, small.file("tokenizer.json"));
  EXPECT_EQ(data.facts()->vocabulary, 280);
}

TEST(Tokenize, ThreadsDoNotChangeABit) {
  const TemporaryFolder folder;
  std::string text, lines;
  for (int i = 0; text.size() < 5000000; ++i) {
    text += fmt::format("the dog {} and\n\nthe bird. ", i * 7919 % 1000);
    lines += fmt::format("{{\"text\": \"the cat {} of the text\\n\"}}\n", i);
  }
  const TokenizeJob job =
      job_of({folder.write("a.txt", text), folder.write("b.jsonl", lines)}, small_tokenizer());
  run(job, folder / "one", 1);
  run(job, folder / "three", 3);
  EXPECT_EQ(read_text(folder / "one"), read_text(folder / "three"));
  // The document that was cut has the ids of the whole.
  const TokenIds whole = job.tokenizer.bpe().encode(text), made = tokens_of(folder / "one");
  EXPECT_TRUE(std::equal(whole.begin(), whole.end(), made.begin()));
  EXPECT_EQ(made[whole.size()], 279);
}

TEST(Tokenize, AKilledOrFailedWriterLeavesNothingWhole) {
  const TemporaryFolder folder;
  const TokenizeJob job = job_of({folder.write("a.jsonl", "{\"text\": 1}\n")}, small_tokenizer());
  EXPECT_NE(message_of([&] { run(job, folder / "out"); }).find("a.jsonl:1: \"text\" is a number"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
  folder.write("out.tmp", "someone else's");
  run(job_of({folder.write("b.txt", "the end")}, small_tokenizer()), folder / "out");
  EXPECT_EQ(tokens_of(folder / "out").back(), 279);
  EXPECT_EQ(read_text(folder / "out.tmp"), "someone else's");
}

TEST(Tokenize, AWriterReplacesNothing) {
  const TemporaryFolder folder;
  const TokenizeJob job = job_of({folder.write("b.txt", "the end")}, small_tokenizer());
  TokenFileWriter first(folder / "out");
  run(job, folder / "out");
  const std::string made = read_text(folder / "out");
  EXPECT_NE(message_of([&] {
              tokenize(job, first, 1, [](const TokenizeProgress&) {});
            }).find("File exists"),
            std::string::npos);
  EXPECT_EQ(read_text(folder / "out"), made);
}

TEST(Tokenize, TheKeyFollowsWhatTheResultFollows) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.txt", std::string(200000, 'a'));
  const TokenizeJob job = job_of({path}, small_tokenizer());
  const std::string key = job_key(job);
  EXPECT_EQ(job_key(job), key);
  TokenizeJob other = job;
  other.end_token = 5;
  EXPECT_NE(job_key(other), key);
  other = job;
  other.text_field = "content";
  EXPECT_NE(job_key(other), key);
  other = job;
  other.tokenizer = TextTokenizer::bytes();
  EXPECT_NE(job_key(other), key);
  const auto time = std::filesystem::last_write_time(path);
  folder.write("a.txt", std::string(199999, 'a') + "b");
  std::filesystem::last_write_time(path, time);
  EXPECT_NE(job_key(job), key) << "contents";
  folder.write("a.txt", std::string(200000, 'a'));
  std::filesystem::last_write_time(path, time + std::chrono::seconds(1));
  EXPECT_NE(job_key(job), key) << "time";
  std::filesystem::last_write_time(path, time);
  EXPECT_EQ(job_key(job), key);
}

TEST(TokenFile, RefusesDamageByName) {
  const TemporaryFolder folder;
  run(job_of({folder.write("b.txt", "the end")}, small_tokenizer()), folder / "out");
  const std::string whole = read_text(folder / "out");
  const auto fault = [&](std::string bytes) {
    return message_of([&] {
      read_token_file({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "f");
    });
  };
  const auto with = [&](size_t at) {
    std::string bytes = whole;
    bytes[at] ^= 1;
    return bytes;
  };
  EXPECT_NE(fault(with(0)).find("'f': no token file"), std::string::npos);
  EXPECT_NE(fault(with(8)).find("version 3 of Rankine's token files"), std::string::npos);
  EXPECT_NE(fault(with(33)).find("header's checksum is wrong"), std::string::npos);
  EXPECT_NE(fault(with(whole.size() - 1)).find("what follows the tokens is wrong"),
            std::string::npos);
  EXPECT_NE(fault(whole.substr(0, whole.size() - 1)).find("cut short"), std::string::npos);
  EXPECT_NE(fault(whole.substr(0, 100)).find("less than the header"), std::string::npos);
  EXPECT_NE(fault(whole + "x").find("the header promises"), std::string::npos);
}

TEST(TokenFile, FilesOfOneCorpusHaveOneTokenizer) {
  const TemporaryFolder folder;
  run(job_of({folder.write("b.txt", "the end")}, small_tokenizer()), folder / "small");
  run(job_of({folder / "b.txt"}, TextTokenizer::bytes()), folder / "bytes");
  EXPECT_EQ(tokens_of(folder / "bytes"),
            (TokenIds{'t', 'h', 'e', ' ', 'e', 'n', 'd', end_of_text_byte_token}));
  const auto open = [&](const char* a, const char* b) {
    TokenData::open(list_files({folder / a, folder / b}, TextOptions{}));
  };
  EXPECT_NO_THROW(open("small", "small"));
  EXPECT_NE(message_of([&] { open("small", "bytes"); }).find("made with another tokenizer"),
            std::string::npos);
}

}  // namespace
}  // namespace rankine
