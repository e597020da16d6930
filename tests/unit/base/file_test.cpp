#include "base/file.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using test::error_of;
using test::TemporaryFolder;

TEST(File, WritesAndReadsAtOffsets) {
  const TemporaryFolder folder;
  {
    File file = File::create(folder / "a");
    file.write("world", 5, 6);
    file.write("hello ", 6, 0);
    file.sync();
    file.close();
  }
  EXPECT_EQ(read_text(folder / "a"), "hello world");
  const File file = File::open_read(folder / "a");
  EXPECT_EQ(file.size(), 11U);
  char part[5];
  file.read(part, 5, 6);
  EXPECT_EQ(std::string(part, 5), "world");
  const Error error = error_of([&] { file.read(part, 5, 8); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("offset 11, 2 bytes short"), std::string::npos)
      << error.what();
}

TEST(File, NamesPathAndReason) {
  const TemporaryFolder folder;
  const Error absent = error_of([&] { File::open_read(folder / "absent"); });
  EXPECT_EQ(absent.kind(), ErrorKind::environment);
  EXPECT_NE(std::string(absent.what()).find("absent': No such file"), std::string::npos);
  EXPECT_EQ(error_of([&] { File::open_read(folder.path()); }).kind(), ErrorKind::environment);
  EXPECT_EQ(error_of([&] { MappedFile file(folder.path()); }).kind(), ErrorKind::environment);
  EXPECT_EQ(error_of([&] { MappedFile file(folder / "absent"); }).kind(), ErrorKind::environment);
}

TEST(File, ReadTextRefusesWhatIsTooLarge) {
  const TemporaryFolder folder;
  folder.write("a", "12345");
  EXPECT_EQ(read_text(folder / "a", 5), "12345");
  EXPECT_EQ(error_of([&] { read_text(folder / "a", 4); }).kind(), ErrorKind::data);
}

TEST(File, AtomicWriteLeavesNothingBehindOnFailure) {
  const TemporaryFolder folder;
  write_text_atomically(folder / "a", "one");
  write_text_atomically(folder / "a", "two");
  EXPECT_EQ(read_text(folder / "a"), "two");
  std::filesystem::create_directory(folder / "taken");
  folder.write("taken/inside", "");
  EXPECT_EQ(error_of([&] { write_text_atomically(folder / "taken", "x"); }).kind(),
            ErrorKind::environment);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            2);
}

TEST(MappedFile, ShowsTheContentsAndMoves) {
  const TemporaryFolder folder;
  MappedFile a(folder.write("a", "abc"));
  MappedFile empty(folder.write("b", ""));
  EXPECT_EQ(empty.size(), 0U);
  empty = std::move(a);
  ASSERT_EQ(empty.size(), 3U);
  EXPECT_EQ(empty.data()[2], 'c');
}

}  // namespace
}  // namespace rankine
