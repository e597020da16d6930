#include <algorithm>
#include <cmath>
#include <iterator>

#include "template/attributes.h"
#include "template/filters.h"
#include "template/numbers.h"
#include "template/operators.h"

namespace rankine {
namespace {

TemplateValue absolute(const FilterCall& call) {
  call.given({});
  if (!call.input.is_number())
    call.state.fail("'abs' needs a number, not a '{}'", type_name(call.input));
  if (call.input.is(ValueKind::real))
    return TemplateValue::real(std::fabs(call.input.as_real()), call.input.origin());
  return call.input.as_integer() < 0
             ? negative(call.state, call.input)
             : TemplateValue::integer(call.input.as_integer(), call.input.origin());
}

// int(value) of a number, false where there is none in 64 bits.
bool whole(double value, int64_t& number) {
  if (!(std::fabs(value) < 9.2e18)) return false;
  number = static_cast<int64_t>(value);
  return true;
}

TemplateValue to_integer(const FilterCall& call) {
  const Parameters given = call.given({"default", "base"});
  TemplateValue otherwise = given.value_or(0, TemplateValue::integer(0));
  need_defined(call.state, call.input);
  int64_t number = 0;
  double real = 0;
  if (call.input.is_integral())
    return TemplateValue::integer(call.input.as_integer(), call.input.origin());
  if (call.input.is(ValueKind::real)) {
    if (std::isnan(call.input.as_real())) return otherwise;
    if (!whole(call.input.as_real(), number)) call.state.fail("a number that is no 64 bit integer");
    return TemplateValue::integer(number, call.input.origin());
  }
  if (!call.input.is(ValueKind::text)) return otherwise;
  const std::string& text = call.input.as_text().text();
  if (read_integer(text, static_cast<int>(std::clamp<int64_t>(given.integer(1, 10), -1, 99)),
                   number))
    return TemplateValue::integer(number, call.input.origin());
  if (!read_real(text, real) || std::isnan(real)) return otherwise;
  if (!whole(real, number)) call.state.fail("a number that is no 64 bit integer");
  return TemplateValue::integer(number, call.input.origin());
}

TemplateValue to_real(const FilterCall& call) {
  const Parameters given = call.given({"default"});
  need_defined(call.state, call.input);
  if (call.input.is_number()) return TemplateValue::real(call.input.as_real(), call.input.origin());
  double real = 0;
  if (call.input.is(ValueKind::text) && read_real(call.input.as_text().text(), real))
    return TemplateValue::real(real, call.input.origin());
  return given.value_or(0, TemplateValue::real(0));
}

// round(value, digits): the decimal that is nearest to the number itself, halves to even.
double rounded(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits < -300) return std::copysign(0.0, value);
  if (digits >= 0) return std::stod(fmt::format("{:.{}f}", value, digits));
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / unit) * unit;
}

TemplateValue round(const FilterCall& call) {
  const Parameters given = call.given({"precision", "method"});
  if (!call.input.is_number())
    call.state.fail("'round' needs a number, not a '{}'", type_name(call.input));
  const int64_t digits = given.integer(0, 0);
  const std::string method = given.has(1) ? given.text(1).text() : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    call.state.fail("'round' knows the methods common, ceil and floor");
  const uint32_t origin = call.input.origin();
  if (method == "common") {
    if (call.input.is_integral() && digits >= 0)
      return TemplateValue::integer(call.input.as_integer(), origin);
    const double value = rounded(call.input.as_real(), digits);
    return call.input.is_integral() ? TemplateValue::integer(static_cast<int64_t>(value), origin)
                                    : TemplateValue::real(value, origin);
  }
  if (digits < -300 || digits > 300) call.state.fail("'round' to {} digits", digits);
  const double unit = std::pow(10.0, static_cast<double>(digits));
  const double scaled = call.input.as_real() * unit;
  if (!std::isfinite(scaled)) call.state.fail("a number that cannot be rounded");
  return TemplateValue::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit,
                             origin);
}

TemplateValue otherwise(const FilterCall& call) {
  const Parameters given = call.given({"default_value", "boolean"});
  if (call.input.is(ValueKind::undefined) || (given.truth(1, false) && !truth(call.input)))
    return given.value_or(0, TemplateValue::text(MarkedText()));
  return call.input;
}

// Attributes alone: of a dict its methods, not its items.
TemplateValue attribute(const FilterCall& call) {
  const Parameters given = call.given({"name"}, 1);
  const std::string& name = given.text(0).text();
  need_defined(call.state, call.input);
  if (call.input.is(ValueKind::dict) && !has_method(call.input, name))
    return TemplateValue::undefined(fmt::format("'dict object' has no attribute '{}'", name));
  return attribute_of(call.state, call.input, name);
}

constexpr FilterEntry filters[] = {{"abs", absolute},      {"attr", attribute}, {"d", otherwise},
                                   {"default", otherwise}, {"float", to_real},  {"int", to_integer},
                                   {"round", round}};

}  // namespace

Filter number_filter(std::string_view name) {
  const auto* found = std::find_if(std::begin(filters), std::end(filters),
                                   [&](const FilterEntry& entry) { return entry.name == name; });
  return found == std::end(filters) ? nullptr : found->filter;
}

}  // namespace rankine
