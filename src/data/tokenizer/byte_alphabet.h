#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// GPT-2's printable stand-ins for bytes: a byte that is printable in Latin-1 stands for itself, the
// others for the code points from U+0100 on.
namespace rankine {

std::array<uint32_t, 256> byte_alphabet();
// Bytes in printable form, and back; none when a character stands for no byte.
std::string to_printable(std::string_view bytes);
std::optional<std::string> from_printable(std::string_view text);

}  // namespace rankine
