#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
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

// One running process with its outputs in files of `folder`.
class Command {
 public:
  Command(const std::filesystem::path& folder, const std::vector<std::string>& arguments)
      : out_(folder / "stdout.txt"), err_(folder / "stderr.txt") {
    std::vector<char*> words{const_cast<char*>(RANKINE_BINARY)};
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      redirect(out_, STDOUT_FILENO);
      redirect(err_, STDERR_FILENO);
      ::execv(words[0], words.data());
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

  void send(int signal) const { ::kill(process_, signal); }
  bool running() const {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != process_;
  }

  Finished wait() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_text(out_),
            read_text(err_)};
  }

 private:
  static void redirect(const std::filesystem::path& path, int descriptor) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(file, descriptor);
    ::close(file);
  }

  std::filesystem::path out_, err_;
  pid_t process_ = -1;
};

inline Finished run_command(const std::filesystem::path& folder,
                            const std::vector<std::string>& arguments) {
  return Command(folder, arguments).wait();
}

}  // namespace rankine::test
