#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/token_source.h"
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
    return TokenData::open({.data = {folder_ / name}, .format = format});
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
      {utf16, "UTF-16 text is not supported"},
      {folder_ / "utf16le.jsonl", "JSON lines"},
      {folder_ / "ok.jsonl", "JSON lines"},
      {folder_ / "empty.txt", "no tokens"},
      {folder_ / "nanogpt-u16.bin", "--data-format raw-u16"},
      {folder_ / "text-zstd.parquet", "Parquet"}};
  for (const auto& [path, reason] : cases) {
    const Error error = test::error_of([&, name = path] { TokenData::open({.data = {name}}); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace rankine
