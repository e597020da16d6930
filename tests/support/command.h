#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

// The program as a user starts it.
namespace rankine::test {

struct Finished {
  int code = -1;  // exit code, or -signal
  std::string out, err;
};

// How a process is started, other than plainly.
struct Start {
  std::vector<std::string> words{RANKINE_BINARY};  // the program, found in PATH, and what precedes
  std::function<void()> prepare;                   // called in the new process before it begins
};

// One running process with its outputs in files of `folder`.
class Command {
 public:
  Command(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
          const Start& start = {})
      : out_(folder / "stdout.txt"), err_(folder / "stderr.txt") {
    for (const std::filesystem::path& path : {out_, err_}) std::filesystem::remove(path);
    std::vector<char*> words;
    for (const std::string& word : start.words) words.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      redirect(out_, STDOUT_FILENO);
      redirect(err_, STDERR_FILENO);
      if (start.prepare) start.prepare();
      ::execvp(words[0], words.data());
      ::_exit(127);
    }
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }

  pid_t process() const { return process_; }
  // What it has printed there so far.
  std::string errors() const { return text_of(err_); }
  std::string output() const { return text_of(out_); }
  void send(int signal) const { ::kill(process_, signal); }
  bool running() const {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != process_;
  }

  bool ends_within(int seconds) const {
    for (int i = 0; i < 50 * seconds && running(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return !running();
  }

  Finished wait() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_text(out_),
            read_text(err_)};
  }

 private:
  static std::string text_of(const std::filesystem::path& path) {
    return std::filesystem::exists(path) ? read_text(path) : std::string();
  }
  static void redirect(const std::filesystem::path& path, int descriptor) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(file, descriptor);
    ::close(file);
  }

  std::filesystem::path out_, err_;
  pid_t process_ = -1;
};

inline Finished run_command(const std::filesystem::path& folder,
                            const std::vector<std::string>& arguments, const Start& start = {}) {
  return Command(folder, arguments, start).wait();
}

}  // namespace rankine::test
