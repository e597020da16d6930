#pragma once
#include <atomic>

#include "base/log.h"
#include "data/tokenize.h"

namespace rankine {

// tokenize() with a progress line, or a line every ten seconds in a file, and a line at the end.
// `threads` 0: a thread for each processor there is. Once `given_up` is true it throws soon.
TokenFileFacts make_tokens(const TokenizeJob& job, TokenFileWriter& writer, int64_t threads,
                           Log& log, const std::atomic<bool>& given_up = false);

}  // namespace rankine
