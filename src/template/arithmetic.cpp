#include <cmath>
#include <limits>

#include "template/escapes.h"
#include "template/operators.h"
#include "template/printf_format.h"

namespace rankine {
namespace {

uint32_t origin_of(const TemplateValue& left, const TemplateValue& right) {
  return left.origin() != 0 ? left.origin() : right.origin();
}

[[noreturn]] void fail_overflow(RenderState& state) {
  state.fail("the result does not fit into 64 bits");
}

int64_t integer_power(RenderState& state, int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow(state);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow(state);
  }
  return result;
}

int64_t integer_result(RenderState& state, ExpressionKind operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (operation) {
    case ExpressionKind::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case ExpressionKind::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case ExpressionKind::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case ExpressionKind::power:
      return integer_power(state, a, b);
    default: {
      if (b == -1) {  // the one quotient that may not fit
        overflow =
            operation == ExpressionKind::floor_divide && __builtin_sub_overflow(0, a, &result);
        break;
      }
      const bool rounds = a % b != 0 && (a < 0) != (b < 0);
      result = operation == ExpressionKind::floor_divide ? a / b - (rounds ? 1 : 0)
                                                         : a % b + (rounds ? b : 0);
    }
  }
  if (overflow) fail_overflow(state);
  return result;
}

double real_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return rest == 0 ? std::copysign(0.0, b) : rest;
}

double real_result(RenderState& state, ExpressionKind operation, double a, double b) {
  switch (operation) {
    case ExpressionKind::add:
      return a + b;
    case ExpressionKind::subtract:
      return a - b;
    case ExpressionKind::multiply:
      return a * b;
    case ExpressionKind::divide:
      return a / b;
    case ExpressionKind::modulo:
      return real_modulo(a, b);
    case ExpressionKind::floor_divide: {
      const double quotient = (a - real_modulo(a, b)) / b;
      const double below = std::floor(quotient);
      return quotient - below > 0.5 ? below + 1 : below;
    }
    default: {
      const double power = std::pow(a, b);
      if (std::isnan(power) && !std::isnan(a) && !std::isnan(b))
        state.fail("a power that is no real number");
      if (std::isinf(power) && std::isfinite(a) && std::isfinite(b))
        state.fail("a power beyond the numbers that can be held");
      return power;
    }
  }
}

TemplateValue number_result(RenderState& state, ExpressionKind operation, const TemplateValue& left,
                            const TemplateValue& right) {
  const uint32_t origin = origin_of(left, right);
  const bool divides = operation == ExpressionKind::divide ||
                       operation == ExpressionKind::floor_divide ||
                       operation == ExpressionKind::modulo;
  const bool negative_power = operation == ExpressionKind::power && right.as_real() < 0;
  if ((divides && right.as_real() == 0) || (negative_power && left.as_real() == 0))
    state.fail("division by zero");
  if (left.is_integral() && right.is_integral() && !negative_power) {
    if (operation != ExpressionKind::divide)
      return TemplateValue::integer(
          integer_result(state, operation, left.as_integer(), right.as_integer()), origin);
    const long double quotient =
        static_cast<long double>(left.as_integer()) / static_cast<long double>(right.as_integer());
    return TemplateValue::real(static_cast<double>(quotient), origin);
  }
  return TemplateValue::real(real_result(state, operation, left.as_real(), right.as_real()),
                             origin);
}

TemplateValue joined(RenderState& state, const TemplateValue& left, const TemplateValue& right) {
  if (left.is_markup() != right.is_markup()) {  // then the other is escaped
    MarkedText text = left.is_markup() ? left.as_text() : escaped(state, left.as_text());
    text.append(right.is_markup() ? right.as_text() : escaped(state, right.as_text()));
    return state.text(std::move(text)).as_markup();
  }
  if (left.is(ValueKind::text)) {
    state.make(left.as_text().size() + right.as_text().size());
    MarkedText text = left.as_text();
    text.append(right.as_text());
    return state.text(std::move(text));
  }
  const auto &a = left.as_list().items, &b = right.as_list().items;
  state.make_items(a.size() + b.size());
  std::vector<TemplateValue> items = a;
  items.insert(items.end(), b.begin(), b.end());
  return state.list(std::move(items), left.as_list().form, origin_of(left, right));
}

TemplateValue repeated(RenderState& state, const TemplateValue& value, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  const size_t size =
      value.is(ValueKind::text) ? value.as_text().size() + 1 : value.as_list().items.size() + 1;
  if (count > std::numeric_limits<uint32_t>::max()) state.make(state.limits().memory_bytes);
  if (value.is(ValueKind::text)) {
    state.make(size * count);
    state.make(value.as_text().spans().size() * count * sizeof(TextSpan));
    MarkedText text;
    for (size_t i = 0; i < count; ++i) text.append(value.as_text());
    return state.text(std::move(text));
  }
  state.make_items(size * count);
  std::vector<TemplateValue> items;
  const auto& once = value.as_list().items;
  for (size_t i = 0; i < count; ++i) items.insert(items.end(), once.begin(), once.end());
  return state.list(std::move(items), value.as_list().form, value.origin());
}

bool is_sequence(const TemplateValue& value) {
  return value.is(ValueKind::text) ||
         (value.is(ValueKind::list) &&
          (value.as_list().form == ListForm::list || value.as_list().form == ListForm::tuple));
}

const char* sign_of(ExpressionKind operation) {
  switch (operation) {
    case ExpressionKind::add:
      return "+";
    case ExpressionKind::subtract:
      return "-";
    case ExpressionKind::multiply:
      return "*";
    case ExpressionKind::divide:
      return "/";
    case ExpressionKind::floor_divide:
      return "//";
    case ExpressionKind::modulo:
      return "%";
    default:
      return "**";
  }
}

}  // namespace

TemplateValue calculate(RenderState& state, ExpressionKind operation, const TemplateValue& left,
                        const TemplateValue& right) {
  if (left.is_number() && right.is_number()) return number_result(state, operation, left, right);
  if (left.is(ValueKind::text) && operation == ExpressionKind::modulo && !left.is_markup())
    return state.text(printf_text(state, left.as_text(), right));
  need_defined(state, left);
  need_defined(state, right);
  if (operation == ExpressionKind::add && is_sequence(left) && left.kind() == right.kind() &&
      (left.is(ValueKind::text) || left.as_list().form == right.as_list().form))
    return joined(state, left, right);
  if (operation == ExpressionKind::multiply && is_sequence(left) && right.is_integral())
    return repeated(state, left, right.as_integer());
  if (operation == ExpressionKind::multiply && is_sequence(right) && left.is_integral())
    return repeated(state, right, left.as_integer());
  state.fail("'{}' has no meaning between a '{}' and a '{}'", sign_of(operation), type_name(left),
             type_name(right));
}

TemplateValue negative(RenderState& state, const TemplateValue& value) {
  need_defined(state, value);
  if (value.is(ValueKind::real)) return TemplateValue::real(-value.as_real(), value.origin());
  if (!value.is_integral()) state.fail("a '{}' has no negative", type_name(value));
  int64_t result = 0;
  if (__builtin_sub_overflow(0, value.as_integer(), &result)) fail_overflow(state);
  return TemplateValue::integer(result, value.origin());
}

}  // namespace rankine
