#pragma once

namespace rankine {

struct SpecialCase {
  char32_t code;
  char32_t upper[3], title[3];  // 0 behind the last
};

// Where a character's upper case is several characters, or null.
const SpecialCase* special_case(char32_t code);

}  // namespace rankine
