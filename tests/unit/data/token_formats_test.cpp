#include "data/token_formats.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/errors.h"
#include "support/token_files.h"

namespace rankine {
namespace {

using test::llmc_header;
using test::megatron_index;
using test::MegatronSequences;

FileBytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void expect_refused(const std::string& reason, const std::function<void()>& call) {
  const Error error = test::error_of(call);
  EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
  EXPECT_TRUE(std::string(error.what()).starts_with("'a.bin': ")) << error.what();
  EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
}

TEST(Llmc, ReadsBothVersions) {
  const std::string gpt2 = llmc_header(20240520, 1, 3) + test::raw_tokens<uint16_t>({1, 2, 3});
  EXPECT_TRUE(looks_like_llmc(bytes_of(gpt2)));
  const TokenRuns a = read_llmc(bytes_of(gpt2), "a.bin");
  EXPECT_EQ(a.width, TokenWidth::u16);
  EXPECT_EQ(a.runs, (std::vector<TokenRun>{{1024, 3}}));
  const std::string llama = llmc_header(20240801, 7, 2) + test::raw_tokens<uint32_t>({1, 2});
  const TokenRuns b = read_llmc(bytes_of(llama), "a.bin");
  EXPECT_EQ(b.width, TokenWidth::u32);
  EXPECT_EQ(b.runs, (std::vector<TokenRun>{{1024, 2}}));
  EXPECT_TRUE(read_llmc(bytes_of(llmc_header(20240520, 1, 0)), "a.bin").runs.empty());
}

TEST(Llmc, RefusesWhatDoesNotFit) {
  const auto refuse = [](const std::string& reason, const std::string& file) {
    expect_refused(reason, [&] { read_llmc(bytes_of(file), "a.bin"); });
  };
  refuse("not a llm.c token file", llmc_header(20240522, 1, 0));
  refuse("not a llm.c token file", "");
  refuse("version 2; version 1", llmc_header(20240520, 2, 0));
  refuse("version 1; version 7", llmc_header(20240801, 1, 0));
  refuse("less than the llm.c header", llmc_header(20240520, 1, 0).substr(0, 1000));
  refuse("promises 4 tokens of 2 bytes, but 6 bytes follow",
         llmc_header(20240520, 1, 4) + "abcdef");
  refuse("promises 2 tokens", llmc_header(20240520, 1, 2) + "abcdef");
  refuse("promises -1 tokens", llmc_header(20240520, 1, -1));
  refuse("promises 2147483647 tokens", llmc_header(20240520, 1, 0x7fffffff));
}

TEST(Megatron, JoinsNeighboursIntoRuns) {
  const std::string index = megatron_index(
      {.lengths = {3, 2, 0, 4, 1}, .pointers = {0, 6, 10, 20, 10}, .documents = {0, 2, 2, 5}});
  const TokenRuns runs = read_megatron_index(bytes_of(index), 28, "a.idx");
  EXPECT_EQ(runs.width, TokenWidth::u16);
  EXPECT_EQ(runs.runs, (std::vector<TokenRun>{{0, 5}, {20, 4}, {10, 1}}));
  const std::string wide =
      megatron_index({.code = 4, .lengths = {3}, .pointers = {0}, .documents = {0, 1}});
  EXPECT_EQ(read_megatron_index(bytes_of(wide), 12, "a.idx").width, TokenWidth::u32);
  const std::string none = megatron_index({.documents = {0}});
  EXPECT_TRUE(read_megatron_index(bytes_of(none), 0, "a.idx").runs.empty());
}

TEST(Megatron, RefusesDamagedIndexes) {
  const MegatronSequences good{.lengths = {3, 2}, .pointers = {0, 6}, .documents = {0, 2}};
  const auto refuse = [](const std::string& reason, const std::string& index) {
    expect_refused(reason, [&] { read_megatron_index(bytes_of(index), 10, "a.bin"); });
  };
  const std::string whole = megatron_index(good);
  EXPECT_NO_THROW(read_megatron_index(bytes_of(whole), 10, "a.bin"));
  refuse("not a Megatron index", "MMIDIDX");
  refuse("less than the Megatron header", whole.substr(0, 20));
  refuse("promises 2 sequences", whole.substr(0, whole.size() - 1));
  refuse("1 bytes follow the index", whole + "x");
  std::string damaged = whole;
  damaged[9] = 2;
  refuse("index version 2", damaged);
  damaged = whole;
  damaged[25] = '\x7f';
  refuse("more than its", damaged);
  damaged = whole;
  damaged[33] = '\xff';
  refuse("more than its", damaged);
  for (const auto& [code, reason] :
       std::vector<std::pair<uint8_t, std::string>>{{0, "code 0 is unknown"},
                                                    {9, "code 9 is unknown"},
                                                    {1, "stored as uint8"},
                                                    {5, "stored as int64"},
                                                    {6, "stored as float64"}}) {
    MegatronSequences other = good;
    other.code = code;
    refuse(reason, megatron_index(other));
  }
  const auto with = [&](auto&& change) {
    MegatronSequences other = good;
    change(other);
    return megatron_index(other);
  };
  refuse("sequence 1 has 3 tokens at byte 6", with([](auto& s) { s.lengths[1] = 3; }));
  refuse("sequence 0 has -1 tokens", with([](auto& s) { s.lengths[0] = -1; }));
  refuse("at byte -2", with([](auto& s) { s.pointers[0] = -2; }));
  refuse("outside its .bin", with([](auto& s) { s.pointers[1] = INT64_MAX; }));
  refuse("document entry 0 is 1", with([](auto& s) { s.documents = {1, 2}; }));
  refuse("document entry 2 is 0", with([](auto& s) { s.documents = {0, 1, 0, 2}; }));
  refuse("ends at sequence 1 of 2", with([](auto& s) { s.documents = {0, 1}; }));
  refuse("ends at sequence 0 of 2", with([](auto& s) { s.documents = {}; }));
}

TEST(Raw, NeedsWholeTokens) {
  EXPECT_EQ(read_raw(bytes_of("abcd"), TokenWidth::u16, "a.bin").runs,
            (std::vector<TokenRun>{{0, 2}}));
  EXPECT_TRUE(read_raw({}, TokenWidth::u32, "a.bin").runs.empty());
  expect_refused("6 bytes are no whole number of 4-byte tokens",
                 [] { read_raw(bytes_of("abcdef"), TokenWidth::u32, "a.bin"); });
}

TEST(Raw, TellsWideTokensByTheirZeros) {
  const std::vector<uint32_t> tokens(100, 90000);
  EXPECT_TRUE(looks_like_raw_u32(bytes_of(test::raw_tokens<uint32_t>(tokens))));
  EXPECT_FALSE(looks_like_raw_u32(bytes_of(test::raw_tokens<uint16_t>(tokens))));
  EXPECT_FALSE(looks_like_raw_u32(bytes_of(test::raw_tokens<uint32_t>({1, 2, 3}))));
}

}  // namespace
}  // namespace rankine
