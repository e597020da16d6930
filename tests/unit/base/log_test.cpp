#include "base/log.h"

#include <gtest/gtest.h>

#include <memory>

namespace rankine {
namespace {

// What was written to a file by `use`.
template <class Use>
std::string written(bool terminal, Use&& use) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* file = ::open_memstream(&text, &size);
  {
    Log log(file, terminal);
    use(log);
  }
  std::fclose(file);
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
  return {text, size};
}

TEST(Log, PlainLines) {
  EXPECT_EQ(written(false,
                    [](Log& log) {
                      log_line(log, "step {} loss {:.2f}", 3, 1.5);
                      warn_line(log, "'{}' is empty", "a.txt");
                      log.redraw("never in a file");
                    }),
            "step 3 loss 1.50\nwarning: 'a.txt' is empty\n");
}

TEST(Log, LinesStandAboveTheProgressLine) {
  EXPECT_EQ(written(true,
                    [](Log& log) {
                      log.redraw("half");
                      log_line(log, "message");
                      log.redraw("whole");
                      log.end_redraw();
                      log.end_redraw();
                    }),
            "\r\x1b[Khalf\r\x1b[Kmessage\nhalf\r\x1b[Kwhole\n");
}

TEST(Progress, OneLinePerReportInAFile) {
  const std::string text = written(false, [](Log& log) {
    Progress progress(log, "read", "tokens", 10);
    progress.report(0);
    progress.report(10, "done");
  });
  EXPECT_TRUE(text.starts_with("read 0 % of 10 tokens\nread 100 % of 10 tokens")) << text;
  EXPECT_TRUE(text.ends_with(", done\n")) << text;
}

TEST(Progress, EndsItsLineOnATerminal) {
  const std::string text = written(true, [](Log& log) {
    Progress progress(log, "read", "tokens", 10);
    progress.report(10);
  });
  EXPECT_TRUE(text.starts_with("\r\x1b[Kread 100 % of 10 tokens")) << text;
  EXPECT_TRUE(text.ends_with("\n")) << text;
}

TEST(Progress, TextGivesRateAndTimeLeft) {
  EXPECT_EQ(progress_text("tokenize", "tokens", {.done = 4e6, .total = 1e7, .seconds = 2}, ""),
            "tokenize 40 % of 10.0 M tokens, 2.00 M tokens/s, 3.0 s left");
  EXPECT_EQ(progress_text("train", "steps",
                          {.done = 60, .total = 100, .started_at = 50, .seconds = 5}, "loss 2"),
            "train 60 % of 100 steps, 2.00 steps/s, 20.0 s left, loss 2");
  EXPECT_EQ(progress_text("read", "files", {.done = 12, .seconds = 1}, ""),
            "read 12 files, 12 files/s");
  EXPECT_EQ(progress_text("read", "files", {.total = 5}, ""), "read 0 % of 5 files");
}

}  // namespace
}  // namespace rankine
