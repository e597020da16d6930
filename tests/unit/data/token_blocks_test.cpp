#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>

#include "base/file.h"
#include "data/token_source.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "support/token_files.h"

namespace rankine {
namespace {

using test::error_of;
using test::TemporaryFolder;

constexpr uint64_t count = 100'000;  // four blocks of 16-bit tokens

std::vector<uint32_t> some_tokens() {
  std::vector<uint32_t> out(count);
  for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<uint32_t>(i * 7919 % 500);
  return out;
}

void write_tokens(const std::filesystem::path& path, const std::vector<uint32_t>& tokens) {
  TokenFileWriter writer(path, PendingFile::Existing::replaced);
  const std::string bytes = test::raw_tokens<uint16_t>(tokens);
  // In uneven pieces, as they are encoded.
  for (size_t at = 0; at < bytes.size(); at += 33'334)
    writer.append(std::string_view(bytes).substr(at, 33'334));
  writer.finish({.vocabulary = 500,
                 .tokens = tokens.size(),
                 .documents = 1,
                 .tokenizer_json = "{\"a\": 1}",
                 .tokenizer_config = "{}",
                 .notes = "a note\n"});
}

TokenData opened(const std::filesystem::path& path) {
  return TokenData::open({{path, DataFormat::tokens}});
}

std::vector<int32_t> all_of(const TokenData& data) {
  std::vector<int32_t> out(data.count());
  data.copy(0, data.count(), out.data());
  return out;
}

// Writes the file again as version 1 had it.
void make_version_1(const std::filesystem::path& path, const std::filesystem::path& to) {
  std::string bytes = read_text(path);
  const size_t sums = 16 * ((2 * count + token_block_bytes - 1) / token_block_bytes);
  bytes.resize(bytes.size() - sums);
  bytes[8] = 1;
  const size_t tail = 128 + 2 * count;
  const uint64_t tail_hash = XXH3_64bits(bytes.data() + tail, bytes.size() - tail);
  std::memcpy(bytes.data() + 80, &tail_hash, 8);
  const uint64_t hash = XXH3_64bits(bytes.data(), 88);
  std::memcpy(bytes.data() + 88, &hash, 8);
  write_text_atomically(to, bytes);
}

TEST(TokenBlocks, AnyChangedByteIsRefusedWhenItIsRead) {
  const TemporaryFolder folder;
  const auto path = folder / "tokens";
  write_tokens(path, some_tokens());
  const std::vector<int32_t> whole = all_of(opened(path));
  const std::string good = read_text(path);
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    // Two of three times outside the tokens, which are most of the file.
    const size_t at = i % 3 == 0   ? 128 + random() % (2 * count)
                      : i % 3 == 1 ? random() % 128
                                   : 128 + 2 * count + random() % (good.size() - 128 - 2 * count);
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    write_text_atomically(path, bad);
    const Error error = error_of([&] { all_of(opened(path)); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << "byte " << at;
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
  }
  write_text_atomically(path, good);
  EXPECT_EQ(all_of(opened(path)), whole);
}

TEST(TokenBlocks, NameThePlaceAndSpareTheOthers) {
  const TemporaryFolder folder;
  const auto path = folder / "tokens";
  write_tokens(path, some_tokens());
  std::string bytes = read_text(path);
  bytes[128 + 2 * 40'000] ^= 1;
  write_text_atomically(path, bytes);
  const TokenData data = opened(path);
  int32_t token = 0;
  EXPECT_NO_THROW(data.copy(0, 1, &token));
  EXPECT_NO_THROW(data.copy(count - 1, 1, &token));
  const std::string said = error_of([&] { data.copy(39'000, 1, &token); }).what();
  EXPECT_NE(said.find("is damaged: tokens 32768 to 65535 have the checksum"), std::string::npos)
      << said;
  EXPECT_THROW(data.check_vocabulary(500), Error);
  EXPECT_THROW(data.largest_id(0, count), Error);
}

TEST(TokenBlocks, TheHashOfAllContentsFollowsEveryTokenAndNotTheFormat) {
  const TemporaryFolder folder;
  std::vector<uint32_t> tokens = some_tokens();
  write_tokens(folder / "a", tokens);
  const uint64_t hash = opened(folder / "a").contents_hash();
  folder.write("raw", test::raw_tokens<uint16_t>(tokens));
  const auto raw_hash = [&] {
    return TokenData::open({{folder / "raw", DataFormat::raw_u16}}).contents_hash();
  };
  EXPECT_EQ(raw_hash(), hash);
  for (const uint64_t place : {uint64_t{0}, uint64_t{51'234}, count - 1}) {
    tokens[place] ^= 1;
    write_tokens(folder / "b", tokens);
    EXPECT_NE(opened(folder / "b").contents_hash(), hash) << place;
    folder.write("raw", test::raw_tokens<uint16_t>(tokens));
    EXPECT_NE(raw_hash(), hash) << place;
    tokens[place] ^= 1;
  }
}

TEST(TokenBlocks, Version1IsReadWithAWarning) {
  const TemporaryFolder folder;
  write_tokens(folder / "new", some_tokens());
  make_version_1(folder / "new", folder / "old");
  const TokenData before = opened(folder / "old"), now = opened(folder / "new");
  EXPECT_EQ(all_of(before), all_of(now));
  EXPECT_EQ(before.contents_hash(), now.contents_hash());
  EXPECT_EQ(now.warnings().size(), 1U) << "its maker's note";
  ASSERT_EQ(before.warnings().size(), 2U);
  EXPECT_NE(before.warnings()[1].find("version 1 of token files has no checksums"),
            std::string::npos);
}

}  // namespace
}  // namespace rankine
