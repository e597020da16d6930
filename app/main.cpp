#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "command.h"
#include "launch/launch.h"
#include "library/failure.h"
#include "machine/stop_signal.h"

namespace rankine {
namespace {

struct Command {
  std::string_view name, summary;
  int (*run)(const CommandArguments&);
};

constexpr std::array commands{
    Command{"train", "train a language model on text or token files", run_train},
    Command{"plan", "say what a layout needs before anything is started", run_plan},
    Command{"generate", "continue a prompt with a trained model", run_generate},
    Command{"eval", "measure how well a model predicts texts", run_eval},
    Command{"convert", "turn checkpoints into Hugging Face folders and back", run_convert},
    Command{"tokenize", "make a token file of text", run_tokenize},
    Command{"tokenizer", "train a tokenizer, or try one on a text", run_tokenizer},
    Command{"inspect", "show a model, a checkpoint or a run", run_inspect},
    Command{"bench", "measure this machine and a training step against it", run_bench}};

void print_usage(std::FILE* out) {
  fmt::print(out,
             "rankine: trains language models, exactly and in parallel\n\nusage: rankine "
             "COMMAND [OPTIONS]\n\n");
  for (const Command& command : commands)
    fmt::print(out, "  {:<10} {}\n", command.name, command.summary);
  fmt::print(out,
             "\n`rankine COMMAND --help` lists a command's options; `rankine --version` the "
             "version.\n");
}

int run(const CommandArguments& arguments) {
  if (arguments.empty()) {
    print_usage(stderr);
    return static_cast<int>(ErrorKind::usage);
  }
  const std::string& name = arguments[0];
  if (name == "--help" || name == "-h" || name == "help") {
    print_usage(stdout);
    return 0;
  }
  if (name == "--version") {
    fmt::print("rankine {}\n", RANKINE_VERSION);
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.name == name) return command.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(command.name);
  }
  const std::string near = nearest_name(name, names);
  fail(ErrorKind::usage, "'{}' is no command{}; `rankine --help` lists them", name,
       near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
}

// All ranks under a launcher meet the same fault: the first speaks, and its end is that of the
// others.
void let_first_rank_speak() {
  try {
    const std::optional<Launched> launched = launched_environment();
    if (launched && launched->rank > 0) std::this_thread::sleep_for(std::chrono::seconds(2));
  } catch (const Error&) {  // an environment that contradicts itself is what will be reported
  }
}

int report(std::string_view message, ErrorKind kind) {
  let_first_rank_speak();
  fmt::print(stderr, "rankine: {}{}\n", kind == ErrorKind::internal ? "internal error: " : "",
             message);
  return static_cast<int>(kind);
}

// A signal that ends all ranks is reported once.
bool another_speaks() {
  try {
    const std::optional<Launched> launched = launched_environment();
    return launched && (launched->rank > 0 || launched->board >= 0);
  } catch (const Error&) {  // reported later
    return false;
  }
}

// Where threads outnumber processors, or share them with other programs, one that spins at an
// OpenMP barrier keeps away the one it waits for. libgomp reads once, when the program is loaded,
// how long they do before they sleep, so the program begins anew with about ten microseconds.
void begin_with_short_spins(char** argv) {
  leave_on_stop_signals(another_speaks());
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  ::setenv("GOMP_SPINCOUNT", "1000", 1);
  std::error_code code;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", code);
  hold_stop_signals();
  if (!code) ::execv(self.c_str(), argv);  // on failure it may merely be slower
  leave_on_stop_signals(another_speaks());
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) {
  rankine::begin_with_short_spins(argv);
  // A write beyond a limit on file sizes is an error of that file, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int code = rankine::run({argv + 1, argv + argc});
    errno = 0;
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (code == 0 && !written) rankine::fail_io("write to", "standard output");
    return code;
  } catch (const std::exception&) {
    const rankine::Error error = rankine::failure_of(std::current_exception());
    return rankine::report(error.what(), error.kind());
  }
}
