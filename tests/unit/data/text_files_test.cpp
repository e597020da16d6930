#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zstd.h>

#include "data/document_reader.h"
#include "data/utf8_text.h"
#include "support/compressed.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using test::error_of;
using test::gzip;
using test::message_of;
using test::TemporaryFolder;

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string contents(const std::filesystem::path& path) {
  const DataFile file = detect_format(path, DataFormat::text);
  const auto stream = open_stream(path, file.compression);
  std::string out;
  char buffer[777];
  while (const size_t bytes = stream->read(buffer, sizeof(buffer))) out.append(buffer, bytes);
  EXPECT_EQ(stream->position(), std::filesystem::file_size(path));
  return out;
}

std::string long_text() {
  std::string text;
  for (int64_t i = 0; text.size() < 700000; ++i) text += std::to_string(i * i % 9973) + "\n";
  return text;
}

TEST(ByteStream, ReadsGzipAndZstandardInAnyNumberOfParts) {
  const TemporaryFolder folder;
  const std::string text = long_text();
  EXPECT_EQ(contents(folder.write("a", text)), text);
  EXPECT_EQ(contents(folder.write("a.gz", gzip(text))), text);
  EXPECT_EQ(contents(folder.write("b.gz", gzip("x") + gzip("") + gzip(text))), "x" + text);
  EXPECT_EQ(contents(folder.write("a.zst", zstd(text))), text);
  EXPECT_EQ(contents(folder.write("b.zst", zstd("x") + zstd("") + zstd(text))), "x" + text);
  EXPECT_EQ(contents(folder.write("e.gz", gzip(""))), "");
  EXPECT_EQ(contents(folder.write("e.zst", zstd(""))), "");
}

TEST(ByteStream, SaysWhereCompressedDataAreDamaged) {
  const TemporaryFolder folder;
  const std::string text = long_text();
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    const std::string cut = whole.substr(0, whole.size() / 2);
    const Error error = error_of([&] { contents(folder.write("cut", cut)); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find("data end within a"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find(fmt::format("at offset {}", cut.size())),
              std::string::npos)
        << error.what();
    EXPECT_NE(message_of([&] {
                contents(folder.write("more", whole + "garbage"));
              }).find("data are wrong"),
              std::string::npos);
  }
  std::string damaged = gzip(text);
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  EXPECT_NE(
      message_of([&] { contents(folder.write("crc", damaged)); }).find("incorrect data check"),
      std::string::npos);
}

TEST(DetectFormat, LooksIntoCompressedFiles) {
  const TemporaryFolder folder;
  const auto format = [&](const char* name, const std::string& bytes) {
    return detect_format(folder.write(name, bytes), DataFormat::automatic);
  };
  const DataFile lines = format("c4.json.gz", gzip("{\"text\": \"x\"}\n"));
  EXPECT_EQ(lines.format, DataFormat::jsonl);
  EXPECT_EQ(lines.compression, Compression::gzip);
  EXPECT_EQ(format("a.jsonl.zst", zstd("{}")).format, DataFormat::jsonl);
  EXPECT_EQ(format("a.ndjson", "").format, DataFormat::jsonl);
  EXPECT_EQ(format("a.txt", gzip("x")).compression, Compression::gzip);
  EXPECT_EQ(format("a.json", "text").format, DataFormat::text);
  EXPECT_NE(message_of([&] { format("a.tar.gz", gzip("x")); }).find("a tar archive"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              format("b.gz", gzip(std::string(257, 'x') + "ustar"));
            }).find("a tar archive"),
            std::string::npos);
  EXPECT_NE(message_of([&] { format("c.gz", gzip(gzip("x"))); }).find("decompress the file once"),
            std::string::npos);
}

std::vector<TextPiece> pieces_of(const std::vector<DataFile>& files, const PieceSizes& sizes) {
  TextReader reader(files, sizes);
  std::vector<TextPiece> out;
  for (TextPiece piece; reader.next(piece);) out.push_back(piece);
  EXPECT_EQ(out.back().bytes_read, reader.total_bytes());
  return out;
}

TEST(TextReader, CutsDocumentsWhereLinesEndBehindLettersOrDigits) {
  const TemporaryFolder folder;
  const DataFile file{folder.write("a", "\xEF\xBB\xBFone.\ntwo\nthree\r\nfour!\nfive 5\nsix")};
  std::vector<std::string> texts;
  for (const TextPiece& piece : pieces_of({file}, {.usual = 8, .most = 100})) {
    texts.push_back(piece.bytes);
    EXPECT_FALSE(piece.is_forced);
    EXPECT_EQ(piece.ends, piece.bytes == "\nsix");
  }
  EXPECT_EQ(texts,
            (std::vector<std::string>{"one.\ntwo", "\nthree", "\r\nfour!\nfive 5", "\nsix"}));
}

TEST(TextReader, CutsAtCharactersWhenNoLineEnds) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 10; ++i) text += "\xE4\xBD\xA0";
  const auto pieces = pieces_of({{folder.write("a", text)}}, {.usual = 4, .most = 8});
  std::string joined;
  for (const TextPiece& piece : pieces) {
    EXPECT_EQ(piece.bytes.size() % 3, 0U);
    EXPECT_EQ(piece.is_forced, !piece.ends);
    joined += piece.bytes;
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(pieces.size(), 5U);
}

TEST(TextReader, KeepsDocumentsWholeForTokenizersThatNeedIt) {
  const TemporaryFolder folder;
  const DataFile file{folder.write("a", "one\ntwo\nthree")};
  EXPECT_EQ(pieces_of({file}, {.usual = 4, .most = 100, .cuts_at_lines = false}).size(), 1U);
  const auto cut = pieces_of({file}, {.usual = 4, .most = 8, .cuts_at_lines = false});
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(cut[0].bytes, "one\ntwo");
  EXPECT_TRUE(cut[0].is_forced);
}

TEST(TextReader, GivesWholeLinesAndCountsEmptyFiles) {
  const TemporaryFolder folder;
  const std::vector<DataFile> files{{folder.write("a", "1\n22\n333\n4444"), DataFormat::jsonl},
                                    {folder.write("empty", ""), DataFormat::jsonl},
                                    {folder.write("mark", "\xEF\xBB\xBF"), DataFormat::text},
                                    {folder.write("b", "5\n"), DataFormat::jsonl}};
  std::vector<std::string> texts;
  for (const TextPiece& piece : pieces_of(files, {.usual = 5})) {
    EXPECT_TRUE(piece.is_lines);
    EXPECT_EQ(piece.file, piece.bytes == "5\n" ? 3U : 0U);
    texts.push_back(piece.bytes);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"1\n22\n", "333\n", "4444", "5\n"}));
  EXPECT_NE(message_of([&] {
              pieces_of({files[0]}, {.usual = 1, .longest_line = 2});
            }).find("a' has a line of more than"),
            std::string::npos);
}

TEST(Utf8, ReplacesWhatPythonReplaces) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"plain \xC3\xBC", "plain \xC3\xBC"},
      {"\xFF\xFE", "??"},
      {"\xE2\x82", "?"},
      {"\xE2\x82x", "?x"},
      {"\xC0\xAF", "??"},
      {"\xED\xA0\x80", "???"},
      {"\xF4\x90\x80\x80", "????"},
      {"\xF0\x9F\x98", "?"},
      {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
      {"a\x80z", "a?z"}};
  for (const auto& [text, wanted] : cases) {
    std::string expected;
    uint64_t count = 0;
    for (const char c : wanted)
      if (c == '?') {
        expected += "\xEF\xBF\xBD";
        ++count;
      } else {
        expected += c;
      }
    std::string buffer;
    uint64_t replaced = 0;
    EXPECT_EQ(valid_utf8(text, buffer, replaced), expected);
    EXPECT_EQ(replaced, count) << expected;
  }
}

// 92 KB that become gigabytes are refused long before that.
TEST(Streams, ACompressedFileMayBecomeSoMuchAndNoMore) {
  const TemporaryFolder folder;
  const auto path = folder.write("small.gz", test::gzip(std::string(80 << 20, 'a')));
  const auto bytes_of = [&](double most_expansion) {
    const auto stream = open_stream(path, Compression::gzip, most_expansion);
    std::vector<char> buffer(1 << 20);
    uint64_t sum = 0;
    for (size_t got = 1; got > 0; sum += got) got = stream->read(buffer.data(), buffer.size());
    return sum;
  };
  const Error refused = test::error_of([&] { bytes_of(usual_expansion); });
  EXPECT_EQ(refused.kind(), ErrorKind::data);
  for (const char* part : {"small.gz' has ", "becomes more than 67108864", "--max-expansion 200"})
    EXPECT_NE(std::string(refused.what()).find(part), std::string::npos) << refused.what();
  EXPECT_EQ(bytes_of(1100), uint64_t{80} << 20);
  // Below 64 MiB nothing is refused, however well it compresses.
  folder.write("small.gz", test::gzip(std::string(60 << 20, 'a')));
  EXPECT_EQ(bytes_of(1), uint64_t{60} << 20);
}

TEST(DataFiles, WhatIsNoFileIsNamedAtOnce) {
  const TemporaryFolder folder;
  folder.write("in/a.txt", "text");
  ASSERT_EQ(::mkfifo((folder / "in/fifo").c_str(), 0600), 0);
  EXPECT_NE(message_of([&] { list_files({folder / "in"}, TextOptions{}); }).find("it is a FIFO"),
            std::string::npos);
  EXPECT_NE(message_of([&] { list_files({folder / "in/fifo"}, TextOptions{}); }).find("is a FIFO"),
            std::string::npos);
  std::filesystem::remove(folder / "in/fifo");
  std::filesystem::create_symlink("loop", folder / "in/loop");
  EXPECT_NE(message_of([&] { list_files({folder / "in"}, TextOptions{}); }).find("Too many levels"),
            std::string::npos);
  std::filesystem::remove(folder / "in/loop");
  std::filesystem::create_directory_symlink(folder / "in", folder / "in/again");
  EXPECT_NE(message_of([&] { list_files({folder / "in"}, TextOptions{}); }).find("links are not"),
            std::string::npos);
  std::filesystem::remove(folder / "in/again");
  EXPECT_EQ(list_files({folder / "in"}, TextOptions{}).size(), 1U);
}

}  // namespace
}  // namespace rankine
