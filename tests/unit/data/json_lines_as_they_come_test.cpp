#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "data/document_reader.h"
#include "data/json_lines.h"
#include "data/text_report.h"
#include "support/compressed.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// JSON lines as programs write them: what is between lines is no part of a text, what is in a text
// is all of it.
namespace rankine {
namespace {

using test::message_of;
using test::TemporaryFolder;

struct Read {
  std::vector<std::string> texts, notes;
};

Read read(const std::filesystem::path& path, PieceSizes sizes = {}, double bad_lines = 1) {
  const std::vector<DataFile> files = list_files({path}, {.format = DataFormat::automatic});
  TextReader reader(files, sizes);
  TextReport report(files, bad_lines);
  JsonLines lines;
  Read out;
  for (TextPiece piece; reader.next(piece);) {
    PieceReport of_piece;
    EXPECT_TRUE(piece.is_lines);
    lines.read_field(piece.bytes, "text", of_piece.lines,
                     [&](std::string_view text) { out.texts.emplace_back(text); });
    report.add(of_piece);
  }
  report.finish();
  out.notes = report.notes();
  return out;
}

using Random = std::mt19937;

std::string any_text(Random& random) {
  const std::vector<std::string> parts{
      "a",      "word ",   "\n",     "\r\n",       "\t",          "\"",     "\\",
      "/",      "\u00e9",  "\u2028", "\u2029",     "\u0085",      "\u00a0", "\ufeff",
      "\u200b", "\x7f",    "\x01",   "{",          "}",           "[",      ",",
      "\\n",    "\\u00e9", "null",   "\U0001f600", "\xEF\xBF\xBD"};
  std::string text;
  for (size_t n = random() % 12; n > 0; --n) text += parts[random() % parts.size()];
  if (random() % 8 == 0) text += '\0';
  return text;
}

// A text as JSON: escaped more or less, and with what else a line may hold.
std::string line_of(const std::string& text, Random& random) {
  const std::string value = nlohmann::json(text).dump(-1, ' ', random() % 2 == 0);
  switch (random() % 4) {
    case 0:
      return "{\"text\":" + value + "}";
    case 1:
      return "  { \"id\" : 3.5e-7, \"text\" : " + value + " } \t";
    case 2:
      return "{\"text\": " + value + ", \"meta\": {\"text\": [\"inner\", {}], \"n\": null}}";
    default:
      return "{\"text2\": \"x\", \"text\":" + value + ", \"\": true}";
  }
}

TEST(JsonLinesAsTheyCome, TextsAreWhole) {
  const TemporaryFolder folder;
  for (uint32_t round = 0; round < 300; ++round) {
    Random random(round);
    std::vector<std::string> texts;
    std::string file = random() % 4 == 0 ? "\xEF\xBB\xBF" : "";
    const std::string end = random() % 2 == 0 ? "\n" : "\r\n";
    for (size_t n = 1 + random() % 9; n > 0; --n) {
      const std::string text = any_text(random);
      texts.push_back(text);
      if (random() % 5 == 0) file += (random() % 2 == 0 ? "" : " \t") + end;
      file += line_of(text, random) + end;
    }
    if (random() % 3 == 0) file.resize(file.size() - end.size());
    const bool packed = random() % 4 == 0;
    const Read got =
        read(folder.write(packed ? "a.jsonl.gz" : "a.jsonl", packed ? test::gzip(file) : file),
             {.usual = 1 + random() % 64});
    ASSERT_EQ(got.texts, texts) << "round " << round << "\n" << file;
    std::filesystem::remove(folder / "a.jsonl");
    std::filesystem::remove(folder / "a.jsonl.gz");
  }
}

TEST(JsonLinesAsTheyCome, LongLinesAreOneText) {
  const TemporaryFolder folder;
  for (const std::string& word :
       {std::string("x"), std::string("word "), std::string("\\n\u00e9")}) {
    std::string text;
    while (text.size() < 3'000'000) text += word;
    const Read got =
        read(folder.write("a.jsonl", nlohmann::json{{"text", text}}.dump() + "\n{\"text\":\"b\"}"));
    ASSERT_EQ(got.texts.size(), 2U);
    EXPECT_EQ(got.texts[0], text);
    EXPECT_EQ(got.texts[1], "b");
  }
}

struct Bad {
  const char *line, *reason;
};

TEST(JsonLinesAsTheyCome, WhatIsNoTextIsToldWithItsLine) {
  const TemporaryFolder folder;
  const std::vector<Bad> all{{R"({"text": "a\ud83d"})", "surrogate"},
                             {R"({"text": "a", "score": NaN})", ""},
                             {R"({"text": "a", "score": Infinity})", ""},
                             {R"({"text": 5})", "\"text\" is a number, not a string"},
                             {R"({"text": null})", "null, not a string"},
                             {R"({"text": ["a"]})", "not a string"},
                             {R"(["a"])", ""},
                             {R"("a")", ""},
                             {R"({"txt": "a"})", "text"},
                             {R"({"text": "a")", ""},
                             {R"({"text": "a"} {"text": "b"})", ""},
                             {R"({'text': 'a'})", ""},
                             {R"({"text": "a",})", ""}};
  for (const Bad& bad : all) {
    const Read got = read(folder.write(
        "a.jsonl", std::string("{\"text\":\"x\"}\n") + bad.line + "\n{\"text\":\"y\"}\n"));
    EXPECT_EQ(got.texts, (std::vector<std::string>{"x", "y"})) << bad.line;
    ASSERT_EQ(got.notes.size(), 1U) << bad.line;
    EXPECT_NE(got.notes[0].find("a.jsonl:2: "), std::string::npos) << got.notes[0];
    EXPECT_NE(got.notes[0].find(bad.reason), std::string::npos) << got.notes[0];
  }
}

TEST(JsonLinesAsTheyCome, TooManyBadLinesAreRefusedWithTheFirst) {
  const TemporaryFolder folder;
  std::string file;
  for (int i = 0; i < 90; ++i) file += "{\"text\": \"a\"}\n";
  for (int i = 0; i < 10; ++i) file += "{bad\n";
  const auto path = folder.write("a.jsonl", file);
  EXPECT_NE(message_of([&] { read(path, {}, 0.01); }).find("a.jsonl:91"), std::string::npos);
  EXPECT_EQ(read(path, {}, 0.1).texts.size(), 90U);
  // The last line of a file that is still being written.
  const auto cut = folder.write("b.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b");
  EXPECT_NE(message_of([&] { read(cut, {}, 0.01); }).find("b.jsonl:2"), std::string::npos);
}

TEST(JsonLinesAsTheyCome, ListsAreNoLines) {
  const TemporaryFolder folder;
  for (const char* text : {R"([{"text": "a"}, {"text": "b"}])", "[\n{\"text\": \"a\"}\n]"})
    EXPECT_NE(message_of([&] {
                read(folder.write("a.json", text));
              }).find("is one JSON list, not JSON lines"),
              std::string::npos);
  const auto lines = folder.write("b.jsonl", "[{\"text\": \"a\"},\n{\"text\": \"b\"}]\n");
  EXPECT_NE(message_of([&] { read(lines, {}, 0.01); }).find("b.jsonl:1"), std::string::npos);
}

}  // namespace
}  // namespace rankine
