#include "template/numbers.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "template/text_units.h"

namespace rankine {
namespace {

std::string_view without_space(std::string_view text) {
  while (!text.empty() && is_space(character_at(text, 0).code))
    text.remove_prefix(character_at(text, 0).bytes);
  while (!text.empty()) {
    const size_t last = character_before(text, text.size());
    if (!is_space(character_at(text, last).code)) break;
    text = text.substr(0, last);
  }
  return text;
}

// The digits without the single underscores between them; false for others.
bool drop_underscores(std::string_view text, std::string& digits) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits.push_back(text[i]);
      continue;
    }
    const auto is_part = [](char sign) {
      return is_letter(static_cast<uint8_t>(sign)) || is_digit(static_cast<uint8_t>(sign));
    };
    if (i == 0 || i + 1 == text.size() || !is_part(text[i - 1]) || !is_part(text[i + 1]))
      return false;
  }
  return true;
}

bool all_digits(std::string_view digits, int base, int64_t& value, bool negative) {
  const std::string signed_digits = (negative ? "-" : "") + std::string(digits);
  const char* end = signed_digits.data() + signed_digits.size();
  if (digits.empty() || digits[0] == '-') return false;
  const auto [stop, fault] = std::from_chars(signed_digits.data(), end, value, base);
  return fault == std::errc() && stop == end;
}

int base_of(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 0;
  const char mark = static_cast<char>(text[1] | 0x20);
  return mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
}

}  // namespace

TemplateValue number_value(std::string_view digits, bool real, std::string& fault) {
  if (real) {
    double value = 0;
    if (!read_real(digits, value)) fault = "a number that cannot be read";
    return TemplateValue::real(value);
  }
  int64_t value = 0;
  const int base = base_of(digits);
  if (!all_digits(base == 0 ? digits : digits.substr(2), base == 0 ? 10 : base, value, false))
    fault = "an integer that does not fit into 64 bits";
  return TemplateValue::integer(value);
}

bool read_integer(std::string_view text, int base, int64_t& value) {
  text = without_space(text);
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  const int written = base_of(text);
  if (base == 0 && written == 0 && text.size() > 1 && text[0] == '0' &&
      text.find_first_not_of("0_") != std::string_view::npos)
    return false;
  if (written != 0 && (base == 0 || base == written)) {
    text.remove_prefix(2);
    if (!text.empty() && text[0] == '_') text.remove_prefix(1);
    base = written;
  }
  std::string digits;
  return (base == 0 || (base >= 2 && base <= 36)) && drop_underscores(text, digits) &&
         all_digits(digits, base == 0 ? 10 : base, value, negative);
}

bool read_real(std::string_view text, double& value) {
  std::string digits;
  if (!drop_underscores(without_space(text), digits) || digits.empty()) return false;
  std::string_view rest = digits;
  const bool negative = rest[0] == '-';
  if (negative || rest[0] == '+') rest.remove_prefix(1);
  if (rest.empty() || rest[0] == '-' || rest[0] == '+') return false;
  if (rest.find_first_of("()") != std::string_view::npos) return false;
  const auto [stop, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (stop != rest.data() + rest.size()) return false;
  if (fault == std::errc::result_out_of_range)  // too large or too small: told by the exponent
    value = rest.find("e-") != std::string_view::npos ||
                    rest.find("E-") != std::string_view::npos || rest.starts_with("0.") ||
                    rest.starts_with(".")
                ? 0.0
                : std::numeric_limits<double>::infinity();
  else if (fault != std::errc())
    return false;
  if (negative) value = -value;
  return true;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  std::string shortest(buffer, scientific.ptr);
  const int exponent = std::atoi(shortest.c_str() + shortest.find('e') + 1);
  if (value != 0 && (exponent < -4 || exponent >= 16)) return shortest;
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  std::string text(buffer, fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace rankine
