#include "launch/launcher_processes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace rankine {
namespace {

namespace fs = std::filesystem;

// The part of a /proc/PID/stat behind the name, which may hold anything: "S 17 ...".
std::string_view behind_name(std::string_view stat) {
  const size_t end = stat.rfind(')');
  return end == std::string_view::npos || end + 2 >= stat.size() ? "" : stat.substr(end + 2);
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Parentage {
  std::string name;
  pid_t parent = 0;  // 0: nothing is known of the process
};

Parentage parentage(pid_t process, const fs::path& proc) {
  const std::string stat = text_of(proc / std::to_string(process) / "stat");
  const std::string_view behind = behind_name(stat);
  const size_t name = stat.find('(') + 1;
  Parentage out;
  if (behind.size() < 3 || name == 0) return out;
  out.name = stat.substr(name, stat.rfind(')') - name);
  std::from_chars(behind.data() + 2, behind.data() + behind.size(), out.parent);
  return out;
}

// By the program's name: mpirun, or mpirun.openmpi.
bool is_launcher(const std::string& name) {
  constexpr std::array<std::string_view, 6> names = {"mpirun",  "mpiexec", "orterun",
                                                     "prterun", "orted",   "prted"};
  return std::ranges::count(names, std::string_view(name).substr(0, name.find('.'))) > 0;
}

bool is_mine(pid_t process, const fs::path& proc) {
  struct stat facts {};
  return ::stat((proc / std::to_string(process)).c_str(), &facts) == 0 &&
         facts.st_uid == ::geteuid();
}

// A file that a process keeps open answers for that process alone, not for a later one of the same
// number.
struct Watched {
  pid_t process;
  int stat;
};

// From here on to watch(): only what a process forked beside other threads may do.
bool runs(const Watched& watched) {
  std::array<char, 512> text;
  const ssize_t count = ::pread(watched.stat, text.data(), text.size(), 0);
  if (count <= 0) return false;
  const std::string_view behind = behind_name({text.data(), static_cast<size_t>(count)});
  return !behind.empty() && behind[0] != 'Z' && behind[0] != 'X';
}

// Whoever reads the other end waits until all of its writers have closed theirs.
void close_all_but(const std::vector<Watched>& all) {
  const int limit = static_cast<int>(std::clamp(::sysconf(_SC_OPEN_MAX), 1024L, 65536L));
  for (int file = 0; file < limit; ++file)
    if (std::ranges::none_of(all, [&](const Watched& w) { return w.stat == file; })) ::close(file);
}

[[noreturn]] void watch(const std::vector<Watched>& all, std::chrono::milliseconds grace) {
  constexpr std::chrono::milliseconds step{50};
  ::setsid();
  sigset_t every;
  ::sigfillset(&every);
  ::sigprocmask(SIG_BLOCK, &every, nullptr);
  close_all_but(all);
  for (; grace > step.zero() && std::ranges::any_of(all, runs); grace -= step)
    ::usleep(std::chrono::microseconds(step).count());
  for (const Watched& watched : all)
    if (runs(watched)) ::kill(watched.process, SIGKILL);
  ::_exit(0);
}

}  // namespace

std::vector<pid_t> launcher_of(pid_t process, const fs::path& proc) {
  std::vector<pid_t> out;
  for (pid_t at = parentage(process, proc).parent; at > 1;) {
    const Parentage one = parentage(at, proc);
    if (is_launcher(one.name) && is_mine(at, proc))
      out.push_back(at);
    else if (!out.empty())
      break;  // whatever runs this job, perhaps within another one
    at = one.parent;
  }
  return out;
}

std::vector<pid_t> processes_below(pid_t process) {
  std::vector<pid_t> out;
  std::error_code code;
  const fs::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (fs::directory_iterator thread(tasks, code), end; !code && thread != end;
       thread.increment(code)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) {
      out.push_back(child);
      const std::vector<pid_t> further = processes_below(child);
      out.insert(out.end(), further.begin(), further.end());
    }
  }
  return out;
}

void end_launcher_after(std::chrono::milliseconds grace) {
  const std::vector<pid_t> launcher = launcher_of(::getpid());
  if (launcher.empty()) return;
  std::vector<pid_t> processes = launcher;
  for (const pid_t process : processes_below(launcher.back()))
    if (std::ranges::count(launcher, process) == 0) processes.push_back(process);
  std::vector<Watched> all;
  for (const pid_t process : processes) {
    const std::string stat = "/proc/" + std::to_string(process) + "/stat";
    all.push_back({process, ::open(stat.c_str(), O_RDONLY | O_CLOEXEC)});
  }
  if (::fork() == 0) watch(all, grace);
  for (const Watched& watched : all) ::close(watched.stat);
}

bool is_stopped(pid_t process) {
  const std::string stat = text_of(fs::path("/proc") / std::to_string(process) / "stat");
  const std::string_view behind = behind_name(stat);
  return !behind.empty() && (behind[0] == 'T' || behind[0] == 't');
}

std::vector<int> stopped_ranks() {
  std::vector<int> out;
  const std::vector<pid_t> launcher = launcher_of(::getpid());
  if (launcher.empty()) return out;
  for (const pid_t process : processes_below(launcher.back())) {
    if (!is_stopped(process)) continue;
    const std::string environment =
        text_of(fs::path("/proc") / std::to_string(process) / "environ");
    const std::string key = "OMPI_COMM_WORLD_RANK=";
    const size_t found = environment.find(key);
    if (found != std::string::npos) out.push_back(std::atoi(&environment[found + key.size()]));
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace rankine
