#include "template/number_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "template/numbers.h"
#include "template/text_tools.h"
#include "template/text_units.h"

namespace rankine {
namespace {

constexpr int64_t most_digits = 1000;  // of a precision

std::string grouped(const std::string& digits, char sign, size_t size) {
  if (sign == '\0') return digits;
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) out.push_back(sign);
    out.push_back(digits[i]);
  }
  return out;
}

std::string signed_text(bool negative, const FieldFormat& format, const std::string& digits) {
  if (negative) return "-" + digits;
  return format.sign == '-' ? digits : format.sign + digits;
}

std::string printed(const char* pattern, int64_t precision, double value) {
  char buffer[2048];
  const int count =
      std::snprintf(buffer, sizeof(buffer), pattern, static_cast<int>(precision), value);
  return {buffer, static_cast<size_t>(std::clamp(count, 0, static_cast<int>(sizeof(buffer)) - 1))};
}

std::string real_digits(RenderState& state, double value, const FieldFormat& format) {
  const int64_t precision = format.precision < 0 ? 6 : format.precision;
  if (precision > most_digits) state.fail("a precision of more than {} digits", most_digits);
  switch (format.type) {
    case 'e':
      return printed("%.*e", precision, value);
    case 'E':
      return printed("%.*E", precision, value);
    case 'f':
    case 'F':
      return printed("%.*f", precision, value);
    case 'g':
    case 'n':
      return printed(format.alternative ? "%#.*g" : "%.*g", precision, value);
    case 'G':
      return printed(format.alternative ? "%#.*G" : "%.*G", precision, value);
    case '%':
      return printed("%.*f", precision, value * 100) + "%";
    case '\0': {
      if (format.precision < 0) return real_text(value);
      std::string text = printed("%.*g", std::max<int64_t>(precision, 1), value);
      if (text.find_first_not_of("0123456789") == std::string::npos &&
          static_cast<int64_t>(text.size()) < std::max<int64_t>(precision, 1) + 1)
        text += ".0";
      return text;
    }
    default:
      state.fail("'{}' formats no real number", format.type);
  }
}

}  // namespace

std::string integer_field(RenderState& state, int64_t value, const FieldFormat& format) {
  const bool negative = value < 0;
  const uint64_t size = negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  std::string digits, mark;
  switch (format.type) {
    case '\0':
    case 'd':
    case 'i':
    case 'u':
    case 'n':
      digits = fmt::format("{}", size);
      break;
    case 'x':
      digits = fmt::format("{:x}", size);
      mark = "0x";
      break;
    case 'X':
      digits = fmt::format("{:X}", size);
      mark = "0X";
      break;
    case 'o':
      digits = fmt::format("{:o}", size);
      mark = "0o";
      break;
    case 'b':
      digits = fmt::format("{:b}", size);
      mark = "0b";
      break;
    default:
      return real_field(state, static_cast<double>(value), format);
  }
  const bool decimal = mark.empty();
  digits = grouped(digits, format.group, decimal ? 3 : 4);
  return signed_text(negative, format, (format.alternative ? mark : "") + digits);
}

std::string real_field(RenderState& state, double value, const FieldFormat& format) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  std::string digits;
  if (std::isnan(value) || std::isinf(value)) {
    digits = std::isnan(value) ? "nan" : "inf";
    if (format.type == 'F' || format.type == 'E' || format.type == 'G')
      for (char& sign : digits) sign = static_cast<char>(sign - 32);
    if (format.type == '%') digits += "%";
  } else {
    digits = real_digits(state, std::fabs(value), format);
    const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    digits = grouped(digits.substr(0, whole), format.group, 3) + digits.substr(whole);
  }
  return signed_text(negative, format, digits);
}

MarkedText padded_field(RenderState& state, MarkedText text, const FieldFormat& format,
                        uint32_t origin) {
  const auto size = static_cast<int64_t>(character_count(text.view()));
  if (size >= format.width) return text;
  const auto missing = static_cast<size_t>(format.width - size);
  const size_t before = format.align == '<' ? 0 : format.align == '^' ? missing / 2 : missing;
  if (format.align != '=')
    return padded(state, text, {before, missing - before, MarkedText(format.fill, origin)});
  size_t mark =
      !text.empty() && (text.text()[0] == '-' || text.text()[0] == '+' || text.text()[0] == ' ')
          ? 1
          : 0;
  if (format.alternative && text.view().substr(mark, 1) == "0" && text.size() > mark + 1 &&
      is_letter(static_cast<uint8_t>(text.text()[mark + 1])))
    mark += 2;
  MarkedText out = text.slice(0, mark);
  out.append(padded(state, text.slice(mark, text.size() - mark),
                    {missing, 0, MarkedText(format.fill, origin)}));
  return out;
}

}  // namespace rankine
