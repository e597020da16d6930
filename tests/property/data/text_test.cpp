#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "data/document_reader.h"
#include "data/json_lines.h"
#include "data/token_file.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/bpe_trainer.h"
#include "support/compressed.h"
#include "support/memory_stream.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using Random = std::mt19937_64;

std::string random_text(Random& random, size_t parts) {
  constexpr const char* words[] = {
      "the",   " cat",         "\n", "\n\n", "\r\n", " ",        "  ",        "42",           "9",
      "don't", "'S",           ".",  "!?",   "\t",   "\xC3\xA9", "e\xCC\x81", "\xE4\xBD\xA0", "x\n",
      "7\r\n", "<|endoftext|>"};
  std::string text;
  for (size_t i = 0; i < parts; ++i) text += words[random() % std::size(words)];
  return text;
}

// A document that is cut has the ids of the whole, for every pattern.
TEST(TextReader, CutsChangeNoIds) {
  const test::TemporaryFolder folder;
  for (const auto pattern : {SplitPattern::gpt2, SplitPattern::llama3, SplitPattern::qwen}) {
    Random random(static_cast<uint64_t>(pattern) + 1);
    BpeTrainer trainer(pattern);
    trainer.add(random_text(random, 3000));
    const BpeTokenizer tokenizer = BpeTokenizer::parse(trainer.train(400), "trained");
    ASSERT_TRUE(tokenizer.can_cut_at_lines());
    for (int round = 0; round < 30; ++round) {
      const std::string text = random_text(random, 400);
      TextReader reader({{folder.write("a", text)}}, {.usual = 16 + random() % 64});
      TokenIds ids;
      size_t pieces = 0;
      for (TextPiece piece; reader.next(piece); ++pieces) {
        const TokenIds part = tokenizer.encode(piece.bytes);
        ids.insert(ids.end(), part.begin(), part.end());
        EXPECT_FALSE(piece.is_forced);
      }
      EXPECT_GT(pieces, 3U);
      ASSERT_EQ(ids, tokenizer.encode(text))
          << "pattern " << static_cast<int>(pattern) << " round " << round;
    }
  }
}

std::string random_line(Random& random) {
  constexpr const char* parts[] = {"{",
                                   "}",
                                   "\"text\"",
                                   ":",
                                   "\"a\"",
                                   ",",
                                   "[",
                                   "]",
                                   "1",
                                   "null",
                                   "true",
                                   "\"",
                                   "\\u00e4",
                                   "\\ud83d",
                                   "\\ude00",
                                   "\\n",
                                   "\t",
                                   "NaN",
                                   " ",
                                   "{\"text\": \"x\"}",
                                   "\"text\": \"y\", ",
                                   "1e5"};
  std::string line =
      random() % 2 == 0 ? "{\"text\": \"ab\\\"c\", \"more\": [1, {\"text\": 2}]}" : "";
  for (size_t i = random() % 4; i > 0; --i) {
    const std::string part = parts[random() % std::size(parts)];
    line.insert(random() % (line.size() + 1), part);
  }
  return line;
}

// What an independent parser says of a line: its text, or none.
std::optional<std::string> text_of(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("text") || !json["text"].is_string()) return std::nullopt;
  return json["text"].get<std::string>();
}

TEST(JsonLines, AgreeWithAnIndependentParser) {
  Random random(7);
  JsonLines lines;
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string line = random_line(random);
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const auto wanted = text_of(line);
    std::optional<std::string> got;
    LineCounts counts;
    lines.read_field(line, "text", counts, [&](std::string_view text) { got = text; });
    ASSERT_EQ(got, wanted) << "line " << i << ": " << line;
    EXPECT_EQ(counts.bad, wanted ? 0U : 1U);
    good += wanted ? 1 : 0;
  }
  EXPECT_GT(good, 1000);
}

TEST(ByteStream, DamagedGzipIsAnErrorOrTheText) {
  Random random(11);
  const std::string text = random_text(random, 500), whole = test::gzip(text);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (size_t i = 1 + random() % 3; i > 0; --i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 3 == 0) bytes.resize(random() % bytes.size());
    const auto stream =
        decompressed(std::make_unique<test::MemoryStream>(bytes), Compression::gzip, "damaged");
    std::string out(text.size() * 2, '\0');
    size_t filled = 0;
    try {
      while (const size_t got = stream->read(out.data() + filled, out.size() - filled))
        filled += got;
      out.resize(filled);
      // Only what the format leaves open (a time, a name) can be other.
      ASSERT_EQ(out, bytes.empty() ? "" : text) << "round " << round;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::data) << "round " << round;
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

TEST(TokenFile, DamagedHeadersAreRefused) {
  const test::TemporaryFolder folder;
  {
    TokenFileWriter writer(folder / "a");
    writer.append("abcdefgh");
    writer.finish({.width = TokenWidth::u16,
                   .vocabulary = 30000,
                   .tokenizer_hash = 5,
                   .tokens = 4,
                   .documents = 2,
                   .tokenizer_json = "json",
                   .tokenizer_config = "config",
                   .notes = "notes"});
  }
  const std::string whole = read_text(folder / "a");
  Random random(13);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    const size_t at = random() % 96;
    const char before = bytes[at];
    bytes[at] = static_cast<char>(random());
    if (bytes[at] == before) continue;
    bool refused = false;
    try {
      read_token_file({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "file");
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::data;
    }
    ASSERT_TRUE(refused) << "round " << round << " byte " << at;
  }
}

}  // namespace
}  // namespace rankine
