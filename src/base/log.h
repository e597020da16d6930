#pragma once
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

// Lines for people. On a terminal the progress of long work is one line drawn again and again; in a
// file or a pipe every report is a plain line. One thread writes to a Log.
namespace rankine {

class Log {
 public:
  explicit Log(std::FILE* file);  // finds out whether `file` is a terminal; null: says nothing
  Log(std::FILE* file, bool terminal) : file_(file), terminal_(terminal) {}

  bool terminal() const { return terminal_; }
  void write(std::string_view line);   // a whole line, above a progress line if one is drawn
  void redraw(std::string_view line);  // replaces the progress line; terminals only
  void end_redraw();                   // leaves the progress line standing

 private:
  std::FILE* file_;
  bool terminal_;
  std::string drawn_;
};

template <class... Args>
void log_line(Log& log, fmt::format_string<Args...> format, Args&&... args) {
  log.write(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void warn_line(Log& log, fmt::format_string<Args...> format, Args&&... args) {
  log.write("warning: " + fmt::format(format, std::forward<Args>(args)...));
}

struct ProgressState {
  double done = 0, total = 0;  // in `unit`; total 0: not known
  double started_at = 0;       // work that was done before this run
  double seconds = 0;          // since the start of this run
};
// "tokenize 40 % of 2.00 M tokens, 1.20 M tokens/s, 12.0 s left, <note>".
std::string progress_text(std::string_view what, std::string_view unit, const ProgressState& state,
                          std::string_view note);

// Progress of one piece of long work, drawn until this object ends.
class Progress {
 public:
  Progress(Log& log, std::string what, std::string unit, double total, double started_at = 0);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // `done` of the total; in a file this is one line, so report as often as lines are wanted.
  void report(double done, std::string_view note = "");

 private:
  Log& log_;
  std::string what_, unit_;
  ProgressState state_;
  std::chrono::steady_clock::time_point start_, drawn_;
};

}  // namespace rankine
