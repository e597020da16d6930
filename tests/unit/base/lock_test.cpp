#include "base/lock.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "base/file.h"
#include "base/temporary.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryFolder;

// A process that has done `work` and stands still until it is killed.
class Standing {
 public:
  template <class Work>
  explicit Standing(Work&& work) {
    int ends[2];
    if (::pipe(ends) != 0) ADD_FAILURE() << "no pipe";
    process_ = ::fork();
    if (process_ == 0) {
      const auto kept = work();
      const bool told = ::write(ends[1], "x", 1) == 1;
      while (told) ::pause();
      ::_exit(1);
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Standing(const Standing&) = delete;
  Standing& operator=(const Standing&) = delete;
  ~Standing() { kill(); }
  pid_t process() const { return process_; }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
};

TEST(LockFile, NamesItsHolderAndEndsWithIt) {
  const TemporaryFolder folder;
  const fs::path file = folder / "lock";
  const auto take = [&] { return std::make_unique<LockFile>(file, "this run", "wait"); };
  Standing holder(take);
  const Error refused = error_of(take);
  EXPECT_EQ(refused.kind(), ErrorKind::environment);
  EXPECT_EQ(refused.what(), fmt::format("this run is in use by process {} on {}; wait",
                                        holder.process(), host_label()));
  holder.kill();
  EXPECT_TRUE(fs::exists(file)) << "as a killed process leaves it";
  {
    const auto lock = take();
    EXPECT_TRUE(lock->works());
    EXPECT_TRUE(read_text(file).starts_with(fmt::format("process {} on", ::getpid())));
  }
  EXPECT_FALSE(fs::exists(file));
}

TEST(LockFile, LeavesAFileOfOthersAlone) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("lock", "my notes");
  EXPECT_EQ(error_of([&] { LockFile(file, "this run", "wait"); }).kind(), ErrorKind::usage);
  EXPECT_EQ(read_text(file), "my notes");
}

TEST(Temporary, NamesAreNewAndKnownAgain) {
  const fs::path a = temporary_name("some/target.txt"), b = temporary_name("some/target.txt");
  EXPECT_NE(a, b);
  EXPECT_EQ(a.parent_path(), "some");
  EXPECT_TRUE(a.filename().string().starts_with("target.txt.rankine-"));
  EXPECT_TRUE(is_temporary_name(a.filename().string()));
  const fs::path deep = temporary_name(std::string(250, 'x'));
  EXPECT_LE(deep.filename().string().size(), 255U);
  EXPECT_TRUE(is_temporary_name(deep.filename().string()));
  for (const char* name :
       {"x.tmp", "x.rankine.tmp", "x.rankine-h-1-2.tmp", "x.rankine-h-1-0123456789abcdeg.tmp",
        "x.rankine-1-0123456789abcdef.tmp", ".rankine-h-1-0123456789abcdef.tmp",
        "x.rankine-h-0-0123456789abcdef.tmp", "x.rankine-h-1-0123456789abcdef"})
    EXPECT_FALSE(is_temporary_name(name)) << name;
}

TEST(Temporary, OnlyWhatDeadMakersLeftIsRemoved) {
  const TemporaryFolder folder;
  struct Made {
    std::unique_ptr<PendingFile> file;
    fs::path path;
    int descriptor;
  };
  const auto make = [&] {
    auto file = std::make_unique<PendingFile>(folder / "target");
    fs::path path;
    const int descriptor = make_temporary_folder(folder / "folder", path);
    std::ofstream(path / "inside") << "x";
    return Made{std::move(file), path, descriptor};
  };
  const auto entries = [&] {
    return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
  };
  for (const char* name : {"target.tmp", "folder.tmp", "target.rankine-notes.tmp"})
    folder.write(name, "someone else's");
  Standing living(make);
  EXPECT_EQ(maker_of(folder / "target"),
            fmt::format("process {} on {}", living.process(), host_label()));
  EXPECT_EQ(maker_of(folder / "folder"), maker_of(folder / "target"));
  EXPECT_EQ(maker_of(folder / "other"), "");
  EXPECT_EQ(remove_abandoned(folder.path()), 0);
  EXPECT_EQ(entries(), 5);
  living.kill();
  EXPECT_EQ(maker_of(folder / "target"), "");
  EXPECT_EQ(remove_abandoned(folder.path()), 2);
  EXPECT_EQ(entries(), 3);
  EXPECT_EQ(read_text(folder / "target.tmp"), "someone else's");
}

TEST(PendingFile, RefusesWhatAppearedMeanwhileWhereItIsToldTo) {
  const TemporaryFolder folder;
  PendingFile file(folder / "a", PendingFile::Existing::refused);
  folder.write("a", "theirs");
  const Error refused = error_of([&] { file.commit(); });
  EXPECT_NE(std::string(refused.what()).find("a': File exists"), std::string::npos);
  EXPECT_EQ(read_text(folder / "a"), "theirs");
}

TEST(File, WhatIsNoFileIsRefusedAtOnce) {
  const TemporaryFolder folder;
  const std::string fifo = (folder / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  fs::create_symlink(folder / "loop", folder / "loop");
  const auto fault = [](auto&& call) { return std::string(error_of(call).what()); };
  for (const auto& [path, word] : {std::pair<fs::path, std::string>{fifo, "it is a FIFO"},
                                   {"/dev/zero", "it is a device"},
                                   {folder.path(), "it is a folder"},
                                   {folder / "loop", "Too many levels of symbolic links"}}) {
    const std::string named = "'" + path.string() + "'";
    for (const std::string& said : {fault([&, file = path] { read_text(file); }),
                                    fault([&, file = path] { MappedFile mapped(file); })}) {
      EXPECT_NE(said.find(word), std::string::npos) << said;
      EXPECT_NE(said.find(named), std::string::npos) << said;
    }
  }
  EXPECT_TRUE(is_there(folder / "loop")) << "so that opening it names the fault";
  EXPECT_FALSE(is_there(folder / "absent"));
  EXPECT_FALSE(is_there(fs::path(fifo) / "below"));
  EXPECT_THROW(is_folder(folder / "loop"), Error);
}

TEST(File, RemovesAWholeFolder) {
  const TemporaryFolder folder;
  folder.write("a/b/c", "x");
  remove_whole(folder / "a");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace rankine
