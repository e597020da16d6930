#pragma once
#include <cstdint>
#include <string>

#include "template/render_state.h"

namespace rankine {

// What Python's format specifications say of one field, those of % and those of format().
struct FieldFormat {
  std::string fill = " ";
  char align = '\0';  // < > ^ =, none
  char sign = '-';    // - + or a space
  bool alternative = false;
  bool zero = false;
  int64_t width = 0;
  char group = '\0';  // , or _
  int64_t precision = -1;
  char type = '\0';
};

// The number of a field without padding, its sign in front. Fails for unknown types.
std::string integer_field(RenderState& state, int64_t value, const FieldFormat& format);
std::string real_field(RenderState& state, double value, const FieldFormat& format);
// Padded to the width; zeros stand behind a number's sign.
MarkedText padded_field(RenderState& state, MarkedText text, const FieldFormat& format,
                        uint32_t origin);

}  // namespace rankine
