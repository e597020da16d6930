#include "base/temporary.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/lock.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view mark = ".rankine-", ending = ".tmp";
constexpr size_t longest_name = 255, digits = 16;

struct Maker {
  std::string_view target, host;
  pid_t process = 0;
};

std::optional<Maker> parse(std::string_view name) {
  const size_t at = name.rfind(mark);
  if (at == std::string_view::npos || at == 0 || !name.ends_with(ending)) return std::nullopt;
  std::string_view rest = name.substr(at + mark.size());
  rest.remove_suffix(ending.size());
  const size_t random = rest.rfind('-');
  if (random == std::string_view::npos || rest.size() - random - 1 != digits) return std::nullopt;
  const std::string_view drawn = rest.substr(random + 1);
  if (drawn.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  rest = rest.substr(0, random);
  const size_t process = rest.rfind('-');
  if (process == std::string_view::npos || process == 0) return std::nullopt;
  Maker maker{name.substr(0, at), rest.substr(0, process)};
  const char* end = rest.data() + rest.size();
  const auto [read, code] = std::from_chars(rest.data() + process + 1, end, maker.process);
  if (code != std::errc() || read != end || maker.process <= 0) return std::nullopt;
  return maker;
}

// What stands before the mark: names have a longest length.
std::string stem_of(const fs::path& target) {
  constexpr size_t most_behind = mark.size() + 40 + 1 + 10 + 1 + digits + ending.size();
  return target.filename().string().substr(0, longest_name - most_behind);
}

fs::path folder_of(const fs::path& target) {
  return target.has_parent_path() ? target.parent_path() : fs::path(".");
}

uint64_t random_number() {
  uint64_t number = 0;
  while (::getrandom(&number, sizeof(number), 0) < 0)
    if (errno != EINTR) fail(ErrorKind::environment, "the system has no random numbers to give");
  return number;
}

// Opened without waiting for anything or following a link; -1 when it is gone or another's.
int open_made(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

// Where there are no locks, only a process of this host that is gone is known to be dead.
bool is_dead(const Maker& maker, Locked locked) {
  if (locked != Locked::unsupported) return locked == Locked::taken;
  return maker.host == host_label() && ::kill(maker.process, 0) != 0 && errno == ESRCH;
}

template <class Visit>
void for_each_made(const fs::path& folder, Visit&& visit) {
  std::error_code code;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    if (parse(it->path().filename().native())) found.push_back(it->path());
  for (const fs::path& path : found) {
    const std::string name = path.filename().string();
    const int descriptor = open_made(path);
    if (descriptor < 0) continue;
    visit(path, *parse(name), descriptor);
    ::close(descriptor);
  }
}

// A living maker's file of this target; -1 when there is none.
int open_living(const fs::path& target, std::string& who) {
  int living = -1;
  const std::string stem = stem_of(target);
  for_each_made(folder_of(target), [&](const fs::path&, const Maker& maker, int descriptor) {
    if (living >= 0 || maker.target != stem || is_dead(maker, try_lock(descriptor))) return;
    living = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    who = fmt::format("process {} on {}", maker.process, maker.host);
  });
  return living;
}

}  // namespace

fs::path temporary_name(const fs::path& target) {
  return target.parent_path() / fmt::format("{}{}{}-{}-{:016x}{}", stem_of(target), mark,
                                            host_label(), ::getpid(), random_number(), ending);
}

bool is_temporary_name(std::string_view name) {
  return parse(name).has_value();
}

int remove_abandoned(const fs::path& folder) {
  int removed = 0;
  for_each_made(folder, [&](const fs::path& path, const Maker& maker, int descriptor) {
    if (!is_dead(maker, try_lock(descriptor)) || !is_at(path, descriptor)) return;
    std::error_code code;
    fs::remove_all(path, code);  // what cannot go now goes at the next start
    removed += code ? 0 : 1;
  });
  return removed;
}

std::string maker_of(const fs::path& target) {
  std::string who;
  if (const int living = open_living(target, who); living >= 0) ::close(living);
  return who;
}

void await_maker(const fs::path& target) {
  std::string who;
  for (int living = -1; (living = open_living(target, who)) >= 0;) {
    const bool ended = await_lock(living);
    ::close(living);
    if (!ended) return;  // no locks here: two may make the same
  }
}

int make_temporary_folder(const fs::path& target, fs::path& made) {
  for (;;) {
    made = temporary_name(target);
    if (::mkdir(made.c_str(), 0777) != 0) fail_io("create folder", made);
    const int descriptor = ::open(made.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0 && errno != ENOENT) fail_io("open folder", made);
    if (descriptor < 0) continue;
    // Who looked for left-overs may have seen it before it was held.
    await_lock(descriptor);
    if (is_at(made, descriptor)) return descriptor;
    ::close(descriptor);
  }
}

}  // namespace rankine
