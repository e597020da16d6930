#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/document_reader.h"
#include "data/json_lines.h"
#include "data/token_source.h"
#include "data/tokenize.h"
#include "support/errors.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using Tokens = std::vector<int32_t>;

class GoldenData : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = test::golden_folder() / "data";
    std::ifstream in(folder_ / "expect.json");
    if (!in) GTEST_SKIP() << "no golden files at " << folder_;
    expected_ = nlohmann::json::parse(in);
  }

  TokenData open(const std::string& name, DataFormat format = DataFormat::automatic) const {
    return TokenData::open({detect_format(folder_ / name, format)});
  }

  std::string contents(const std::string& name) const { return read_text(folder_ / name); }

  static Tokens tokens(const TokenData& data) {
    Tokens out(data.count());
    data.copy(0, data.count(), out.data());
    return out;
  }

  void compare(const std::string& name, const TokenData& data) const {
    const nlohmann::json& entry = expected_.at(name);
    const Tokens ids = tokens(data);
    ASSERT_EQ(ids.size(), entry.at("n_tokens").get<size_t>()) << name;
    EXPECT_EQ(Tokens(ids.begin(), ids.begin() + 8), entry.at("first8").get<Tokens>()) << name;
    if (entry.contains("last4")) {
      EXPECT_EQ(Tokens(ids.end() - 4, ids.end()), entry.at("last4").get<Tokens>()) << name;
    }
    EXPECT_EQ(std::accumulate(ids.begin(), ids.end(), int64_t{0}), entry.at("sum").get<int64_t>());
  }

  std::filesystem::path folder_;
  nlohmann::json expected_;
};

TEST_F(GoldenData, TokenFiles) {
  compare("nanogpt-u16.bin", open("nanogpt-u16.bin", DataFormat::raw_u16));
  compare("llmc-gpt2.bin", open("llmc-gpt2.bin"));
  compare("llmc-llama3.bin", open("llmc-llama3.bin"));
  compare("raw-u32.bin", open("raw-u32.bin", DataFormat::raw_u32));
  const TokenData narrow = open("raw-u32.bin", DataFormat::raw_u16);
  ASSERT_EQ(narrow.warnings().size(), 1U);
}

TEST_F(GoldenData, Megatron) {
  const nlohmann::json& entry = expected_.at("megatron_text_document.idx");
  const TokenData data = open("megatron_text_document.bin");
  const auto lengths = entry.at("lengths").get<std::vector<uint64_t>>();
  EXPECT_EQ(data.count(), std::accumulate(lengths.begin(), lengths.end(), uint64_t{0}));
  compare("nanogpt-u16.bin", data);
  EXPECT_EQ(tokens(open("megatron_text_document.idx")), tokens(data));
}

TEST_F(GoldenData, TextIsItsBytes) {
  for (const char* name : {"crlf.txt", "nul-bytes.txt", "one-char.txt", "no-newline.txt",
                           "fortune-style.txt", "endoftext.txt"}) {
    const TokenData data = open(name);
    const std::string text = contents(name);
    EXPECT_EQ(data.count(), expected_.at(name).at("bytes").get<uint64_t>()) << name;
    Tokens bytes;
    for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
    EXPECT_EQ(tokens(data), bytes) << name;
    EXPECT_EQ(data.warnings().empty(), std::string_view(name) != "nul-bytes.txt") << name;
  }
  EXPECT_EQ(open("bom.txt").count(), expected_.at("bom.txt").at("bytes").get<uint64_t>() - 3);
}

TEST_F(GoldenData, RefusedFiles) {
  const test::TemporaryFolder folder;
  const auto utf16 = folder.write("utf16.txt", contents("utf16le.jsonl"));
  const std::vector<std::pair<std::filesystem::path, std::string>> cases{
      {utf16, "is UTF-16 text, which is not supported"},
      {folder_ / "utf16le.jsonl", "is UTF-16 text"},
      {folder_ / "empty.txt", "no tokens"},
      {folder_ / "nanogpt-u16.bin", "--data-format raw-u16"},
      {folder_ / "text-zstd.parquet", "Parquet"}};
  for (const auto& [path, reason] : cases) {
    const Error error =
        test::error_of([&, name = path] { TokenData::open(list_files({name}, TextOptions{})); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

// The documents of JSON lines as an independent reader gave them.
TEST_F(GoldenData, JsonLines) {
  for (const auto& [name, entry] : expected_.items()) {
    if (!name.ends_with(".jsonl") || !entry.contains("docs")) continue;
    TextReader reader({detect_format(folder_ / name, DataFormat::automatic)}, {.usual = 64});
    JsonLines lines;
    LineCounts counts;
    std::vector<std::string> documents;
    for (TextPiece piece; reader.next(piece);)
      lines.read_field(piece.bytes, "text", counts,
                       [&](std::string_view text) { documents.emplace_back(text); });
    ASSERT_EQ(documents.size(), entry.at("docs").size()) << name;
    for (size_t i = 0; i < documents.size(); ++i) {
      const nlohmann::json& wanted = entry.at("docs")[i];
      if (wanted.is_string()) {
        EXPECT_EQ(documents[i], wanted.get<std::string>()) << name << " document " << i;
      } else {
        EXPECT_EQ(documents[i].size(), wanted.at("chars").get<size_t>()) << name;
      }
    }
    const bool damaged = name == "bad-lines.jsonl";
    EXPECT_EQ(counts.bad, damaged ? 13U : 0U) << name;
    EXPECT_EQ(counts.blank, damaged ? 2U : name == "only-blank.jsonl" ? 3U : 0U) << name;
  }
}

TEST_F(GoldenData, BadLinesAreNamed) {
  const std::vector<DataFile> files =
      list_files({folder_ / "bad-lines.jsonl"}, {.format = DataFormat::jsonl});
  const test::TemporaryFolder out;
  const auto run = [&](double bad_lines) {
    TokenFileWriter writer(out / "tokens");
    tokenize({.files = files,
              .text_field = "text",
              .bad_lines = bad_lines,
              .tokenizer = TextTokenizer::bytes(),
              .end_token = 256},
             writer, 1, [](const TokenizeProgress&) {});
  };
  const std::string refused = test::message_of([&] { run(0.8); });
  EXPECT_NE(refused.find("13 of 16 JSON lines are bad, more than --bad-lines 0.8 allows"),
            std::string::npos)
      << refused;
  for (const char* part : {"bad-lines.jsonl:2: no JSON", ":3: ", ":4: no \"text\"",
                           ":5: \"text\" is a number, not a string", ":6: \"text\" is null"})
    EXPECT_NE(refused.find(part), std::string::npos) << refused;
  EXPECT_FALSE(std::filesystem::exists(out / "tokens"));
  run(0.82);
  const TokenData data = TokenData::open({{out / "tokens", DataFormat::tokens}});
  EXPECT_EQ(data.facts()->documents, 3U);
  ASSERT_EQ(data.warnings().size(), 1U);
  EXPECT_NE(data.warnings()[0].find("13 of 16 JSON lines are bad and left out"), std::string::npos);
}

}  // namespace
}  // namespace rankine
