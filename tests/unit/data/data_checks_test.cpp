#include "data/data_checks.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/temporary_folder.h"
#include "support/token_files.h"

namespace rankine {
namespace {

using test::message_of;

// What `rankine train` would make of the options and files; "" when nothing.
std::string idle(const std::vector<std::string>& arguments, const std::vector<DataFile>& files) {
  DataOptions o;
  OptionTable table;
  declare_options(table, o);
  parse_options(table, arguments);
  try {
    refuse_idle_options(table, files);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(IdleOptions, AreThoseOfOtherKindsOfFiles) {
  using enum DataFormat;
  struct Case {
    DataFormat format;
    std::vector<std::string> effective;
  };
  const std::vector<Case> cases{
      {text, {"begin-token", "end-token", "data-cache"}},
      {jsonl, {"text-field", "bad-lines", "begin-token", "end-token", "data-cache"}},
      {instructions,
       {"bad-lines", "prompt-field", "response-field", "messages-field", "ignore-fields",
        "chat-template", "chat-template-kwargs", "begin-token", "end-token", "data-cache"}},
      {tokens, {}},
      {raw_u16, {"end-token"}},
      {llmc, {"end-token"}},
      {megatron, {"end-token"}}};
  for (const Case& c : cases)
    for (const char* name : {"text-field", "bad-lines", "prompt-field", "response-field",
                             "messages-field", "ignore-fields", "chat-template",
                             "chat-template-kwargs", "begin-token", "end-token", "data-cache"}) {
      const bool works = std::ranges::find(c.effective, name) != c.effective.end();
      const std::string said = idle({std::string("--") + name, "0.5"}, {{"some file", c.format}});
      EXPECT_EQ(said.empty(), works) << name << " on format " << static_cast<int>(c.format);
      if (!works) {
        EXPECT_TRUE(said.starts_with(fmt::format("--{} has no effect on the data", name))) << said;
      }
      EXPECT_EQ(idle({}, {{"some file", c.format}}), "");
    }
}

TEST(IdleOptions, OneFileThatReadsAnOptionIsEnough) {
  const std::vector<DataFile> mixed{{"a.txt", DataFormat::text}, {"b.jsonl", DataFormat::jsonl}};
  EXPECT_EQ(idle({"--text-field", "body", "--bad-lines", "0"}, mixed), "");
  EXPECT_NE(idle({"--prompt-field", "q"}, mixed).find("'a.txt' is plain text"), std::string::npos);
}

TEST(IdleOptions, OthersTokensDoNotSayWhereDocumentsEnd) {
  const std::vector<DataFile> raw{{"a.bin", DataFormat::raw_u16}};
  EXPECT_EQ(idle({"--end-token", "</s>", "--document-mask"}, raw), "");
  EXPECT_NE(idle({"--end-token", "</s>", "--document-mask"}, {{"a", DataFormat::tokens}}), "");
}

TEST(SameFile, IsRefusedByWhateverName) {
  const test::TemporaryFolder folder;
  const auto a = folder.write("d/a.txt", "one"), b = folder.write("d/b.txt", "one");
  std::filesystem::create_symlink(a, folder / "link.txt");
  std::filesystem::create_hard_link(a, folder / "hard.txt");
  std::filesystem::create_directory_symlink(folder / "d", folder / "e");
  const auto check = [](const std::vector<std::filesystem::path>& paths) {
    require_distinct(list_files(paths, {.format = DataFormat::automatic}));
  };
  EXPECT_NO_THROW(check({a, b})) << "equal contents are not one file";
  EXPECT_NO_THROW(check({folder / "d"}));
  for (const auto& twice :
       std::vector<std::vector<std::filesystem::path>>{{a, a},
                                                       {folder / "d", b},
                                                       {a, folder / "link.txt"},
                                                       {a, folder / "hard.txt"},
                                                       {folder / "d", folder / "e"},
                                                       {folder / "d/../d/a.txt", a},
                                                       {folder / "d/*.txt", b}})
    EXPECT_NE(message_of([&] { check(twice); }).find("are the same file"), std::string::npos)
        << twice[0] << " " << twice[1];
  EXPECT_NO_THROW(require_distinct({{"absent", DataFormat::text}, {"absent", DataFormat::text}}))
      << "reading it says more";
}

TEST(SameFile, OneDataSetOfMegatronHasTwoNames) {
  const test::TemporaryFolder folder;
  const auto bin = folder.write("m.bin", "xxxx"), idx = folder.write("m.idx", "yyyy");
  EXPECT_NE(message_of([&] {
              require_distinct({{bin, DataFormat::megatron}, {idx, DataFormat::megatron}});
            }).find("are the same file"),
            std::string::npos);
}

}  // namespace
}  // namespace rankine
