#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "template/template_value.h"

// Numbers as Python reads and prints them.
namespace rankine {

// Of a template's literal, without underscores; `fault` says what is wrong with it.
TemplateValue number_value(std::string_view digits, bool real, std::string& fault);
// int(text, base) and float(text); false where Python raises, or beyond 64 bits.
bool read_integer(std::string_view text, int base, int64_t& value);
bool read_real(std::string_view text, double& value);
// repr(value): the shortest text that reads back, "1.0", "1e+16", "inf", "nan".
std::string real_text(double value);

}  // namespace rankine
