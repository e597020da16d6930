#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace rankine {

// `text` itself when it is valid UTF-8; else a view of `buffer` in which U+FFFD stands for each
// ill-formed piece (the longest beginning of a sequence, as Unicode and Python do it), and
// `replaced` grows by their number.
std::string_view valid_utf8(std::string_view text, std::string& buffer, uint64_t& replaced);

}  // namespace rankine
