#include "template/value_tests.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "template/filters.h"
#include "template/operators.h"
#include "template/template_object.h"
#include "template/text_units.h"
#include "template/value_text.h"

namespace rankine {
namespace {

struct NamedComparison {
  std::string_view name;
  Comparison comparison;
};
constexpr NamedComparison comparisons[] = {
    {"==", Comparison::equal},         {"eq", Comparison::equal},
    {"equalto", Comparison::equal},    {"!=", Comparison::unequal},
    {"ne", Comparison::unequal},       {">", Comparison::greater},
    {"gt", Comparison::greater},       {"greaterthan", Comparison::greater},
    {">=", Comparison::greater_equal}, {"ge", Comparison::greater_equal},
    {"<", Comparison::less},           {"lt", Comparison::less},
    {"lessthan", Comparison::less},    {"<=", Comparison::less_equal},
    {"le", Comparison::less_equal},    {"in", Comparison::in}};

std::optional<Comparison> comparison_of(std::string_view name) {
  for (const NamedComparison& entry : comparisons)
    if (entry.name == name) return entry.comparison;
  return std::nullopt;
}

bool all_in_case(RenderState& state, const TemplateValue& value, bool upper) {
  const MarkedText text = text_of(state, value);
  bool cased = false;
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text.view(), at);
    if (is_titlecase(character.code) ||
        (upper ? is_lower(character.code) : is_upper(character.code)))
      return false;
    cased = cased || is_upper(character.code) || is_lower(character.code);
    at += character.bytes;
  }
  return cased;
}

bool is_sequence(const TemplateValue& value) {
  if (value.is(ValueKind::list)) {
    const ListForm form = value.as_list().form;
    return form != ListForm::keys && form != ListForm::values && form != ListForm::items;
  }
  return value.is(ValueKind::undefined) || value.is(ValueKind::text) || value.is(ValueKind::dict);
}

bool is_callable(const TemplateValue& value) {
  if (value.is(ValueKind::undefined)) return true;  // so Python says of Jinja's undefined
  return value.is(ValueKind::object) && value.as_object().kind != ObjectKind::space &&
         value.as_object().kind != ObjectKind::generator &&
         value.as_object().kind != ObjectKind::cycler;
}

// A name that can be looked up; a list or dict cannot.
bool is_name(RenderState& state, const TemplateValue& value) {
  if (!is_hashable(value)) state.fail("a '{}' is no name", type_name(value));
  return value.is(ValueKind::text);
}

bool leaves(RenderState& state, const TemplateValue& value, int64_t divisor, int64_t rest) {
  const TemplateValue left =
      calculate(state, ExpressionKind::modulo, value, TemplateValue::integer(divisor));
  return equal(state, left, TemplateValue::integer(rest));
}

using Test = bool (*)(RenderState&, const TemplateValue&);
struct Entry {
  std::string_view name;
  Test test;
};
constexpr Entry tests[] = {
    {"defined", [](RenderState&, const TemplateValue& v) { return !v.is(ValueKind::undefined); }},
    {"undefined", [](RenderState&, const TemplateValue& v) { return v.is(ValueKind::undefined); }},
    {"none", [](RenderState&, const TemplateValue& v) { return v.is(ValueKind::none); }},
    {"boolean", [](RenderState&, const TemplateValue& v) { return v.is(ValueKind::boolean); }},
    {"true", [](RenderState&,
                const TemplateValue& v) { return v.is(ValueKind::boolean) && v.as_boolean(); }},
    {"false", [](RenderState&,
                 const TemplateValue& v) { return v.is(ValueKind::boolean) && !v.as_boolean(); }},
    {"integer", [](RenderState&, const TemplateValue& v) { return v.is(ValueKind::integer); }},
    {"float", [](RenderState&, const TemplateValue& v) { return v.is(ValueKind::real); }},
    {"number", [](RenderState&, const TemplateValue& v) { return v.is_number(); }},
    {"string", [](RenderState&, const TemplateValue& v) { return v.is(ValueKind::text); }},
    {"mapping", [](RenderState&, const TemplateValue& v) { return v.is(ValueKind::dict); }},
    {"sequence", [](RenderState&, const TemplateValue& v) { return is_sequence(v); }},
    {"iterable",
     [](RenderState&, const TemplateValue& v) {
       return is_iterable(v) || (v.is(ValueKind::object) && v.as_object().kind == ObjectKind::loop);
     }},
    {"callable", [](RenderState&, const TemplateValue& v) { return is_callable(v); }},
    {"odd", [](RenderState& state, const TemplateValue& v) { return leaves(state, v, 2, 1); }},
    {"even", [](RenderState& state, const TemplateValue& v) { return leaves(state, v, 2, 0); }},
    {"lower",
     [](RenderState& state, const TemplateValue& v) { return all_in_case(state, v, false); }},
    {"upper",
     [](RenderState& state, const TemplateValue& v) { return all_in_case(state, v, true); }},
    {"escaped", [](RenderState&, const TemplateValue&) { return false; }},
    {"filter",
     [](RenderState& state, const TemplateValue& v) {
       return is_name(state, v) && is_filter(v.as_text().view());
     }},
    {"test", [](RenderState& state, const TemplateValue& v) {
       return is_name(state, v) && is_value_test(v.as_text().view());
     }}};

Test plain_test(std::string_view name) {
  const auto* found = std::find_if(std::begin(tests), std::end(tests),
                                   [&](const Entry& entry) { return entry.name == name; });
  return found == std::end(tests) ? nullptr : found->test;
}

}  // namespace

bool is_value_test(std::string_view name) {
  return plain_test(name) != nullptr || comparison_of(name) || name == "divisibleby" ||
         name == "sameas";
}

bool apply_test(RenderState& state, std::string_view name, const TemplateValue& value,
                const Arguments& arguments) {
  state.step();
  if (const Test test = plain_test(name)) {
    need_no_arguments(state, name, arguments);
    return test(state, value);
  }
  if (!is_value_test(name)) state.fail("there is no test '{}'", name);
  const Parameters given(state, name, arguments, {"other"}, 1);
  if (name == "sameas") return value.is_same_as(given.value(0));
  if (name == "divisibleby")
    return equal(state, calculate(state, ExpressionKind::modulo, value, given.value(0)),
                 TemplateValue::integer(0));
  return compare(state, *comparison_of(name), value, given.value(0));
}

}  // namespace rankine
