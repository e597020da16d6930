#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// Numbers and names as people read and write them.
namespace rankine {

// "1.50 GiB", "512 B": binary units, three significant digits.
std::string format_bytes(uint64_t bytes);
// "124.4 M", "7.50 B": decimal units for counts of parameters and tokens.
std::string format_count(double count);
// "3.2 s", "4 min 05 s", "2 h 10 min".
std::string format_seconds(double seconds);
// "2GiB", "512 MiB", "1.5GB", "4096": bytes. Throws Error{usage} naming `what` when it is no size.
uint64_t parse_bytes(std::string_view text, std::string_view what);
// The candidate with the smallest edit distance, or "" when none is near (distance > 1/3 of the
// length, at least 2).
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace rankine
