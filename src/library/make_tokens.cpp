#include "library/make_tokens.h"

#include "base/file.h"
#include "base/text.h"
#include "launch/processors.h"
#include "machine/process.h"

namespace rankine {

TokenFileFacts make_tokens(const TokenizeJob& job, TokenFileWriter& writer, int64_t threads,
                           Log& log, const std::atomic<bool>& given_up) {
  constexpr double between_lines = 10;  // seconds
  uint64_t total = 0;
  for (const DataFile& file : job.files) total += File::open_read(file.path).size();
  const int workers =
      threads > 0 ? static_cast<int>(threads) : static_cast<int>(allowed_processors().size());
  const double start = monotonic_seconds();
  TokenFileFacts facts;
  {
    Progress progress(log, "tokenize", "bytes", static_cast<double>(total));
    double reported = 0;
    facts = tokenize(job, writer, workers, [&](const TokenizeProgress& p) {
      require(!given_up, ErrorKind::environment, "tokenizing was given up after a failure");
      const double seconds = monotonic_seconds() - start;
      if (!log.terminal() && seconds < reported + between_lines) return;
      progress.report(static_cast<double>(p.bytes),
                      format_count(static_cast<double>(p.tokens)) + " tokens");
      reported = seconds;
    });
  }
  const double seconds = monotonic_seconds() - start;
  log_line(log, "tokenized {} into {} tokens of {} documents in {}, {}/s, {} thread{}",
           format_bytes(total), format_count(static_cast<double>(facts.tokens)), facts.documents,
           format_seconds(seconds),
           format_bytes(static_cast<uint64_t>(static_cast<double>(total) / seconds)), workers,
           workers == 1 ? "" : "s");
  return facts;
}

}  // namespace rankine
