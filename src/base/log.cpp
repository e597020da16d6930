#include "base/log.h"

#include <unistd.h>

#include "base/text.h"

namespace rankine {

Log::Log(std::FILE* file)
    : file_(file), terminal_(file != nullptr && ::isatty(::fileno(file)) == 1) {}

void Log::write(std::string_view line) {
  if (file_ == nullptr) return;
  if (!drawn_.empty()) std::fputs("\r\x1b[K", file_);
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fputc('\n', file_);
  std::fputs(drawn_.c_str(), file_);
  std::fflush(file_);
}

void Log::redraw(std::string_view line) {
  if (!terminal_) return;
  drawn_ = line;
  std::fputs("\r\x1b[K", file_);
  std::fputs(drawn_.c_str(), file_);
  std::fflush(file_);
}

void Log::end_redraw() {
  if (drawn_.empty()) return;
  drawn_.clear();
  std::fputc('\n', file_);
  std::fflush(file_);
}

std::string progress_text(std::string_view what, std::string_view unit, const ProgressState& state,
                          std::string_view note) {
  std::string out = state.total > 0
                        ? fmt::format("{} {:.0f} % of {} {}", what, 100 * state.done / state.total,
                                      format_count(state.total), unit)
                        : fmt::format("{} {} {}", what, format_count(state.done), unit);
  const double fresh = state.done - state.started_at;
  if (state.seconds > 0 && fresh > 0) {
    const double rate = fresh / state.seconds;
    out += rate < 10 ? fmt::format(", {:.2f} {}/s", rate, unit)
                     : fmt::format(", {} {}/s", format_count(rate), unit);
    if (state.done < state.total)
      out += fmt::format(", {} left", format_seconds((state.total - state.done) / rate));
  }
  if (!note.empty()) out += fmt::format(", {}", note);
  return out;
}

Progress::Progress(Log& log, std::string what, std::string unit, double total, double started_at)
    : log_(log),
      what_(std::move(what)),
      unit_(std::move(unit)),
      state_{started_at, total, started_at, 0},
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  log_.end_redraw();
}

void Progress::report(double done, std::string_view note) {
  const auto now = std::chrono::steady_clock::now();
  state_.done = done;
  state_.seconds = std::chrono::duration<double>(now - start_).count();
  if (!log_.terminal()) {
    log_.write(progress_text(what_, unit_, state_, note));
    return;
  }
  // Drawing is slower than a short step; ten times a second is enough for the eye.
  if (done < state_.total && now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  log_.redraw(progress_text(what_, unit_, state_, note));
}

}  // namespace rankine
