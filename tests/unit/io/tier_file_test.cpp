#include "io/tier_file.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using test::error_of;
using test::TemporaryFolder;
using Engine = TierFile::Engine;

constexpr uint64_t page = TierFile::alignment;
const char* const own_name = "rankine-offload-0.tier";

class Pages {
 public:
  explicit Pages(uint64_t bytes)
      : data_(static_cast<uint8_t*>(std::aligned_alloc(page, bytes)), std::free) {
    std::memset(data_.get(), 0, bytes);
  }
  uint8_t* data() const { return data_.get(); }

 private:
  std::unique_ptr<uint8_t, decltype(&std::free)> data_;
};

bool has_uring(const TemporaryFolder& folder) {
  return TierFile({.folder = folder.path(), .name = own_name, .bytes = page}).engine_name() ==
         "io_uring";
}

// What `body` returns in a process of its own; a signal that ended it comes as "signal N".
std::string in_another_process(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said;
    try {
      said = body();
    } catch (const Error& error) {
      said = fmt::format("{}: {}", error.exit_code(), error.what());
    }
    const bool whole = ::write(ends[1], said.data(), said.size()) == ssize_t(said.size());
    ::_exit(whole ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : said;
}

class TierFileRoundTrip : public testing::TestWithParam<std::tuple<Engine, bool>> {};

TEST_P(TierFileRoundTrip, EqualsAMemoryModel) {
  const auto [engine, direct] = GetParam();
  const TemporaryFolder folder;
  if (engine == Engine::io_uring && !has_uring(folder)) GTEST_SKIP() << "no io_uring here";
  constexpr uint64_t pages = 3000;
  TierFile file({.folder = folder.path(),
                 .name = own_name,
                 .bytes = pages * page,
                 .engine = engine,
                 .direct = direct});
  EXPECT_EQ(file.engine_name(), engine == Engine::io_uring ? "io_uring" : "threads");
  if (!direct) {
    EXPECT_FALSE(file.direct());
  }
  std::vector<uint8_t> model(pages * page);  // reserved bytes read as zero
  const Pages memory(pages * page);          // pieces under way never overlap, neither here
  std::mt19937 random(20);
  for (int round = 0; round < 12; ++round) {
    std::deque<std::pair<uint64_t, uint64_t>> reads;
    std::deque<TierWork> works;
    // Ranges side by side in the file, all under way at once: skipped, written or read.
    for (uint64_t at = 0; at < pages;) {
      const uint64_t most = random() % 4 == 0 ? 1500 : 9;
      const uint64_t count = std::min(pages - at, 1 + random() % most);
      const uint64_t offset = at * page, bytes = count * page;
      at += count;
      if (random() % 2 == 0) {
        for (uint64_t i = 0; i < bytes; i += 8) {
          const uint64_t value = random();
          std::memcpy(memory.data() + offset + i, &value, 8);
        }
        std::memcpy(&model[offset], memory.data() + offset, bytes);
        works.push_back(file.start_write(offset, memory.data() + offset, bytes));
      } else if (random() % 4 != 0) {
        std::memset(memory.data() + offset, 0xee, bytes);
        works.push_back(file.start_read(offset, memory.data() + offset, bytes));
        reads.emplace_back(offset, bytes);
      }
    }
    // Waited for in any order.
    std::shuffle(works.begin(), works.end(), random);
    for (TierWork& work : works) work.wait();
    for (const auto& [offset, bytes] : reads)
      ASSERT_EQ(std::memcmp(&model[offset], memory.data() + offset, bytes), 0)
          << "seed 20, round " << round << ", offset " << offset << ", bytes " << bytes;
  }
  file.start_read(0, memory.data(), pages * page).wait();
  EXPECT_EQ(std::memcmp(model.data(), memory.data(), pages * page), 0) << "seed 20";
}

INSTANTIATE_TEST_SUITE_P(
    All, TierFileRoundTrip,
    testing::Combine(testing::Values(Engine::io_uring, Engine::threads), testing::Bool()),
    [](const auto& setup) {
      return std::string(std::get<0>(setup.param) == Engine::io_uring ? "io_uring" : "threads") +
             (std::get<1>(setup.param) ? "_direct" : "_buffered");
    });

TEST(TierFile, ManyRequestsUnderWayAndHandlesThatOutliveTheFile) {
  const TemporaryFolder folder;
  constexpr uint64_t pages = 2000;
  const Pages memory(pages * page);
  std::vector<TierWork> works;
  {
    TierFile file({.folder = folder.path(), .name = own_name, .bytes = pages * page});
    for (uint64_t i = 0; i < pages; ++i)
      works.push_back(file.start_write(i * page, memory.data() + i * page, page));
  }
  for (TierWork& work : works) {
    EXPECT_TRUE(work.done());
    work.wait();
    EXPECT_TRUE(work.done());
    work.wait();
  }
  EXPECT_TRUE(TierWork().done());
}

TEST(TierFile, LivesInAFolderItMakesWithoutAName) {
  const TemporaryFolder folder;
  const std::filesystem::path inner = folder / "made/for it";
  const TierFile file({.folder = inner, .name = own_name, .bytes = 8 * page});
  EXPECT_EQ(file.path(), inner / own_name);
  EXPECT_EQ(file.bytes(), 8 * page);
  EXPECT_TRUE(std::filesystem::is_empty(inner)) << "whatever ends the process leaves nothing";
}

TEST(TierFile, IsAlsoMemory) {
  const TemporaryFolder folder;
  TierFile file({.folder = folder.path(), .name = own_name, .bytes = 2 * page});
  auto* memory = static_cast<uint8_t*>(file.map());
  memory[page] = 7;
  ::msync(memory, 2 * page, MS_SYNC);
  const Pages read(page);
  file.start_read(page, read.data(), page).wait();
  EXPECT_EQ(read.data()[0], 7);
  ::munmap(memory, 2 * page);
}

TEST(TierFile, RefusesWhatIsNotAligned) {
  const TemporaryFolder folder;
  const Pages memory(2 * page);
  const auto kind = [](auto&& call) { return error_of(call).kind(); };
  EXPECT_EQ(
      kind([&] { TierFile({.folder = folder.path(), .name = own_name, .bytes = page + 512}); }),
      ErrorKind::internal);
  TierFile file({.folder = folder.path(), .name = own_name, .bytes = 2 * page});
  EXPECT_EQ(kind([&] { file.start_read(512, memory.data(), page); }), ErrorKind::internal);
  EXPECT_EQ(kind([&] { file.start_read(0, memory.data() + 512, page); }), ErrorKind::internal);
  EXPECT_EQ(kind([&] { file.start_write(0, memory.data(), 512); }), ErrorKind::internal);
  EXPECT_EQ(kind([&] { file.start_write(page, memory.data(), 2 * page); }), ErrorKind::internal);
  EXPECT_EQ(kind([&] { file.start_write(3 * page, memory.data(), 0); }), ErrorKind::internal);
  EXPECT_TRUE(file.start_write(2 * page, memory.data(), 0).done());
}

TEST(TierFile, RefusesAFolderThatCannotBe) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("file", "x");
  const Error error =
      error_of([&] { TierFile({.folder = file / "inner", .name = own_name, .bytes = page}); });
  EXPECT_EQ(error.kind(), ErrorKind::environment);
  EXPECT_NE(std::string(error.what()).find("inner': Not a directory"), std::string::npos)
      << error.what();
}

TEST(TierFile, RefusesMoreThanTheFileSystemHasAndLeavesNothing) {
  const TemporaryFolder folder;
  const Error error = error_of(
      [&] { TierFile({.folder = folder.path(), .name = own_name, .bytes = uint64_t{1} << 52}); });
  EXPECT_EQ(error.kind(), ErrorKind::resource);
  const std::string text = error.what();
  EXPECT_TRUE(text.starts_with("cannot reserve ")) << text;
  EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TierFile, RefusesWhatTheSystemRefusesWhenReserving) {
  const TemporaryFolder folder;
  const std::string said = in_another_process([&]() -> std::string {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    TierFile({.folder = folder.path(), .name = own_name, .bytes = 2 << 20});
    return "no error";
  });
  EXPECT_TRUE(said.starts_with("5: cannot reserve 2.00 MiB for '")) << said;
  EXPECT_NE(said.find("File too large"), std::string::npos) << said;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// A small memory file system in a namespace of its own.
std::string on_tmpfs(const std::filesystem::path& folder, unsigned long flags,
                     const std::function<std::string()>& body) {
  return in_another_process([&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", folder.c_str(), "tmpfs", flags, "size=1m") != 0)
      return "no mount";
    return body();
  });
}

TEST(TierFile, RefusesAReadOnlyFileSystem) {
  const TemporaryFolder folder;
  const std::string said = on_tmpfs(folder.path(), MS_RDONLY, [&]() -> std::string {
    TierFile({.folder = folder.path(), .name = own_name, .bytes = page});
    return "no error";
  });
  if (said == "no mount") GTEST_SKIP() << "may not mount";
  EXPECT_EQ(said, fmt::format("3: cannot create '{}': Read-only file system",
                              (folder / own_name).string()));
}

TEST(TierFile, FallsBackToThePageCacheOnAMemoryFileSystem) {
  const TemporaryFolder folder;
  const std::string said = on_tmpfs(folder.path(), 0, [&]() -> std::string {
    TierFile file({.folder = folder.path(), .name = own_name, .bytes = 4 * page});
    const Pages memory(8 * page);
    std::memset(memory.data(), 7, 4 * page);
    file.start_write(0, memory.data(), 4 * page).wait();
    file.start_read(0, memory.data() + 4 * page, 4 * page).wait();
    if (std::memcmp(memory.data(), memory.data() + 4 * page, 4 * page) != 0) return "other bytes";
    return file.direct() ? "direct" : "buffered";
  });
  if (said == "no mount") GTEST_SKIP() << "may not mount";
  EXPECT_EQ(said, "buffered");
}

// As containers do it.
bool refuse_uring_to_this_process() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(code), code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(TierFile, ThreadsTakeThePlaceOfARefusedUring) {
  const TemporaryFolder folder;
  const auto name_of = [&](Engine engine) {
    return in_another_process([&]() -> std::string {
      if (!refuse_uring_to_this_process()) return "no filter";
      const TierFile file(
          {.folder = folder.path(), .name = own_name, .bytes = page, .engine = engine});
      return std::string(file.engine_name());
    });
  };
  const std::string best = name_of(Engine::best);
  if (best == "no filter") GTEST_SKIP() << "may not filter system calls";
  EXPECT_EQ(best, "threads");
  const std::string said = name_of(Engine::io_uring);
  EXPECT_TRUE(said.starts_with("3: io_uring is not to be had")) << said;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TierFile, FilesOfOneFolderAndNameAreApartAndNothingElseIsTouched) {
  const TemporaryFolder folder;
  for (const char* name : {own_name, "rankine-offload-7.tier", "notes.txt"})
    folder.write(name, "someone else's");
  const Pages memory(2 * page);
  {
    TierFile one({.folder = folder.path(), .name = own_name, .bytes = page});
    TierFile other({.folder = folder.path(), .name = own_name, .bytes = page});
    std::memset(memory.data(), 5, page);
    one.start_write(0, memory.data(), page).wait();
    other.start_read(0, memory.data() + page, page).wait();
    EXPECT_EQ(memory.data()[page], 0);
  }
  for (const char* name : {own_name, "rankine-offload-7.tier", "notes.txt"})
    EXPECT_EQ(read_text(folder / name), "someone else's");
}

// The way to a file without a name that this process has open in a folder.
std::filesystem::path only_open_file(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    if (!gone && target.string().starts_with(folder.string() + "/")) return entry.path();
  }
  ADD_FAILURE() << "no open file in " << folder;
  return {};
}

TEST(TierFile, AFileCutBySomeoneIsAnErrorWithItsPlace) {
  const TemporaryFolder folder;
  for (const Engine engine : {Engine::best, Engine::threads}) {
    TierFile file({.folder = folder.path(), .name = own_name, .bytes = 4 * page, .engine = engine});
    const std::filesystem::path open = only_open_file(folder.path());
    std::filesystem::resize_file(open, page);
    const Pages memory(4 * page);
    const std::string place =
        fmt::format(" '{}' at offset 4096: the file was cut by someone else", file.path().string());
    const Error read = error_of([&] { file.start_read(page, memory.data(), page).wait(); });
    EXPECT_EQ(read.kind(), ErrorKind::data);
    EXPECT_EQ(read.what(), "cannot read" + place);
    // Written at its end, the file would be as long as before.
    const Error written = error_of([&] { file.start_write(page, memory.data(), 3 * page).wait(); });
    EXPECT_EQ(written.what(), "cannot write" + place);
    EXPECT_EQ(std::filesystem::file_size(open), page);
  }
}

TEST(TierFile, LackOfRoomAtAWriteIsAnErrorWithItsPlace) {
  const TemporaryFolder folder;
  for (const Engine engine : {Engine::best, Engine::threads}) {
    const std::string said = in_another_process([&]() -> std::string {
      ::signal(SIGXFSZ, SIG_IGN);
      TierFile file(
          {.folder = folder.path(), .name = own_name, .bytes = 8 * page, .engine = engine});
      const rlimit limit{4 * page, 4 * page};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      const Pages memory(8 * page);
      file.start_write(0, memory.data(), 8 * page).wait();
      return "no error";
    });
    EXPECT_EQ(said, fmt::format("5: cannot write '{}' at offset 16384: File too large",
                                (folder / own_name).string()));
  }
}

}  // namespace
}  // namespace rankine
