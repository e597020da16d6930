#include "data/token_source.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/errors.h"
#include "support/temporary_folder.h"
#include "support/token_files.h"

namespace rankine {
namespace {

using test::error_of;
using test::message_of;
using test::TemporaryFolder;
using Tokens = std::vector<int32_t>;
using Paths = std::vector<std::filesystem::path>;

TokenData open(Paths paths, DataFormat format = DataFormat::automatic) {
  return TokenData::open(list_files(paths, {.format = format}));
}

Tokens all_tokens(const TokenData& data) {
  Tokens out(data.count());
  data.copy(0, data.count(), out.data());
  return out;
}

Tokens codes(std::string_view text) {
  Tokens out;
  for (const char c : text) out.push_back(c == '|' ? 256 : static_cast<unsigned char>(c));
  return out;
}

TEST(TextData, BytesWithAnEndTokenBetweenDocuments) {
  const TemporaryFolder folder;
  const TokenData data = open({folder.write("b", "hello"), folder.write("empty", ""),
                               folder.write("a", "\r\n\xC3\xBC"), folder.write("c", "!")});
  EXPECT_TRUE(data.is_bytes());
  EXPECT_EQ(all_tokens(data), codes("hello|\r\n\xC3\xBC|!"));
  EXPECT_EQ(data.largest_id(0, data.count()), 256U);
  ASSERT_EQ(data.warnings().size(), 1U);
  EXPECT_NE(data.warnings()[0].find("empty': empty, left out"), std::string::npos);
}

TEST(TextData, DropsAByteOrderMarkAtTheBeginningOnly) {
  const TemporaryFolder folder;
  const std::string mark = "\xEF\xBB\xBF";
  const TokenData data =
      open({folder.write("a", mark + "x" + mark), folder.write("b", mark), folder.write("c", "y")});
  EXPECT_EQ(all_tokens(data), codes("x" + mark + "|y"));
}

TEST(TextData, RangesAcrossFilesSmallAndMapped) {
  const TemporaryFolder folder;
  std::string large(200000, 'x');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i % 23);
  const TokenData data =
      open({folder.write("a", "12"), folder.write("b", large), folder.write("c", "34")});
  const Tokens expected = codes("12|" + large + "|34");
  EXPECT_EQ(all_tokens(data), expected);
  for (const auto& [first, count] : std::vector<std::pair<size_t, size_t>>{
           {0, 0}, {1, 5}, {2, 1}, {200000, 6}, {200006, 0}, {77, 4096}}) {
    Tokens part(count);
    data.copy(first, count, part.data());
    EXPECT_TRUE(
        std::equal(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(first)))
        << first;
  }
  int32_t one = 0;
  EXPECT_EQ(error_of([&] { data.copy(data.count(), 1, &one); }).kind(), ErrorKind::internal);
}

TEST(TextData, FoldersAreSearchedInOrderAndGlobsExpanded) {
  const TemporaryFolder folder;
  folder.write("d/b/2.txt", "2");
  folder.write("d/a/9.txt", "9");
  folder.write("d/c.txt", "3");
  folder.write("d/.hidden/x.txt", "x");
  folder.write("d/.x", "x");
  EXPECT_EQ(all_tokens(open({folder / "d"})), codes("9|2|3"));
  EXPECT_EQ(all_tokens(open({folder / "d/*/*.txt"})), codes("9|2"));
  EXPECT_EQ(all_tokens(open({folder / "d/c.txt", folder / "d/[ab]"})), codes("3|9|2"));
}

TEST(TextData, WarnsOfBinaryFiles) {
  const TemporaryFolder folder;
  const TokenData data =
      open({folder.write("a", std::string("a\0b", 3)), folder.write("b", std::string("\0", 1))});
  EXPECT_EQ(data.count(), 5U);
  ASSERT_EQ(data.warnings().size(), 1U);
  EXPECT_NE(data.warnings()[0].find("and 1 more: NUL bytes"), std::string::npos);
}

TEST(TextData, RefusesWhatItCannotRead) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "none/sub");
  const std::vector<std::pair<std::filesystem::path, std::string>> cases{
      {folder / "absent", "absent' does not exist"},
      {folder / "*.none", "no file matches"},
      {folder / "none", "has no files in it"},
      {folder.write("a.txt.gz", "x"), "is no gzip data, whatever its name says"},
      {folder.write("a.zst", "x"), "is no Zstandard data"},
      {folder.write("a.parquet", "PAR1"), "is Parquet, which is not supported; convert"},
      {folder.write("p.txt", "PAR1x"), "is Parquet"},
      {folder.write("a.tar", "x"), "is a tar archive, which is not supported; unpack"},
      {folder.write("t", std::string(257, 'n') + "ustar"), "is a tar archive"},
      {folder.write("list.json", " [{}]"), "is one JSON list, not JSON lines"},
      {folder.write("u16le.txt",
                    "\xff\xfe"
                    "a"),
       "is UTF-16 text, which is not supported; convert the file to UTF-8"},
      {folder.write("u16be.txt",
                    "\xfe\xff"
                    "a"),
       "is UTF-16 text"},
      {folder.write("a.bin", "abcd"), "give --data-format raw-u16"},
      {folder.write("empty.txt", ""), "there are no tokens"},
      {"/dev/null", "it is a device, not a file"}};
  for (const auto& [path, reason] : cases) {
    const Error error = error_of([&, name = path] { open({name}); });
    EXPECT_EQ(error.kind(), path == "/dev/null" ? ErrorKind::environment : ErrorKind::data)
        << error.what();
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
  std::filesystem::create_symlink("nowhere", folder / "none/link");
  EXPECT_NE(message_of([&] { open({folder / "none"}); }).find("cannot open"), std::string::npos);
}

TEST(TokenFileData, ConcatenatesFormatsInOrder) {
  const TemporaryFolder folder;
  const auto llmc = folder.write(
      "1.bin", test::llmc_header(20240520, 1, 2) + test::raw_tokens<uint16_t>({50256, 7}));
  folder.write("m.bin", test::raw_tokens<uint32_t>({100, 200, 300, 128000}));
  const auto index = folder.write(
      "m.idx", test::megatron_index(
                   {.code = 4, .lengths = {1, 2}, .pointers = {12, 0}, .documents = {0, 1, 2}}));
  const Tokens expected{50256, 7, 128000, 100, 200};
  EXPECT_EQ(all_tokens(open({llmc, folder / "m.bin"})), expected);
  EXPECT_EQ(all_tokens(open({llmc, index})), expected);
  EXPECT_EQ(all_tokens(open({folder.path()})), expected);
  EXPECT_EQ(all_tokens(open({folder / "*"})), expected);
  EXPECT_FALSE(open({llmc}).is_bytes());
  EXPECT_EQ(error_of([&] { open({folder / "m.bin"}, DataFormat::llmc); }).kind(), ErrorKind::data);
  EXPECT_EQ(error_of([&] { open({llmc}, DataFormat::megatron); }).kind(), ErrorKind::environment);
  EXPECT_NE(message_of([&] {
              open({llmc, folder.write("t.txt", "x")});
            }).find("cannot be mixed"),
            std::string::npos);
}

TEST(TokenFileData, RawNeedsItsWidth) {
  const TemporaryFolder folder;
  const auto path = folder.write("r.bin", test::raw_tokens<uint32_t>(std::vector<uint32_t>(64, 9)));
  EXPECT_EQ(open({path}, DataFormat::raw_u32).count(), 64U);
  const TokenData wrong = open({path}, DataFormat::raw_u16);
  EXPECT_EQ(wrong.count(), 128U);
  ASSERT_EQ(wrong.warnings().size(), 1U);
  EXPECT_NE(wrong.warnings()[0].find("raw-u32"), std::string::npos);
}

TEST(Vocabulary, NamesFileAndPosition) {
  const TemporaryFolder folder;
  std::vector<uint32_t> tokens(200000, 5);
  tokens[150001] = 999;
  const auto first = folder.write("1.bin", test::raw_tokens<uint32_t>({1, 2, 3}));
  const auto second = folder.write("2.bin", test::raw_tokens<uint32_t>(tokens));
  const TokenData data = open({first, second}, DataFormat::raw_u32);
  EXPECT_NO_THROW(data.check_vocabulary(1000));
  const Error error = error_of([&] { data.check_vocabulary(999); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("2.bin': token 150001 has id 999"), std::string::npos)
      << error.what();
  EXPECT_NO_THROW(data.check_vocabulary(999, 0, 150004));
  EXPECT_EQ(error_of([&] { data.check_vocabulary(999, 150004, 1); }).kind(), ErrorKind::data);
  EXPECT_EQ(data.largest_id(0, data.count()), 999U);
  EXPECT_EQ(data.largest_id(0, 3), 3U);
}

TEST(Vocabulary, NegativeIdsAreTooLarge) {
  const TemporaryFolder folder;
  const auto path = folder.write("1.bin", test::raw_tokens<uint32_t>({1, 0xffffffff}));
  EXPECT_NE(message_of([&] {
              open({path}, DataFormat::raw_u32).check_vocabulary(1 << 30);
            }).find("token 1 has id 4294967295"),
            std::string::npos);
}

TEST(Vocabulary, BytesNeed257) {
  const TemporaryFolder folder;
  const TokenData data = open({folder.write("a", "abc")});
  EXPECT_NO_THROW(data.check_vocabulary(257));
  EXPECT_EQ(error_of([&] { data.check_vocabulary(256); }).kind(), ErrorKind::data);
}

}  // namespace
}  // namespace rankine
