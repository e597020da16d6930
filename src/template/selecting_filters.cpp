#include "template/filters.h"
#include "template/operators.h"
#include "template/value_tests.h"

namespace rankine {
namespace {

std::string name_argument(const FilterCall& call, const TemplateValue& value, const char* of) {
  need_defined(call.state, value);
  if (!value.is(ValueKind::text)) call.state.fail("'{}' needs the name of a {}", call.name, of);
  return value.as_text().text();
}

std::vector<TemplateValue> map(const FilterCall& call) {
  std::vector<TemplateValue> made;
  if (!truth(call.input)) return {};
  if (call.arguments.positional.empty()) {
    const Parameters given = call.given({"attribute", "default"}, 1);
    const TemplateValue otherwise = given.has_some(1) ? given.value(1) : TemplateValue();
    for (const TemplateValue& item : items_of(call.state, call.input))
      made.push_back(follow(call.state, item, given.value(0), otherwise));
    return made;
  }
  const std::string name = name_argument(call, call.arguments.positional[0], "filter");
  Arguments rest;
  rest.positional.assign(call.arguments.positional.begin() + 1, call.arguments.positional.end());
  rest.named = call.arguments.named;
  for (const TemplateValue& item : items_of(call.state, call.input))
    made.push_back(apply_filter(call.state, name, item, rest));
  return made;
}

// select, reject, selectattr, rejectattr.
std::vector<TemplateValue> select(const FilterCall& call) {
  if (!truth(call.input)) return {};
  const bool by_attribute = call.name.ends_with("attr"), wanted = call.name.starts_with("select");
  const auto& given = call.arguments.positional;
  const size_t first = by_attribute ? 1 : 0;
  if (given.size() < first) call.state.fail("'{}' needs the name of an attribute", call.name);
  std::string test;
  Arguments rest;
  if (given.size() > first) {
    test = name_argument(call, given[first], "test");
    rest.positional.assign(given.begin() + static_cast<ptrdiff_t>(first) + 1, given.end());
    rest.named = call.arguments.named;
  }
  std::vector<TemplateValue> kept;
  for (const TemplateValue& item : items_of(call.state, call.input)) {
    const TemplateValue value = by_attribute ? follow(call.state, item, given[0]) : item;
    const bool is = test.empty() ? truth(value) : apply_test(call.state, test, value, rest);
    if (is == wanted) kept.push_back(item);
  }
  return kept;
}

}  // namespace

Filter selecting_filter(std::string_view name) {
  if (name == "map") return made_later<map>;
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr")
    return made_later<select>;
  return nullptr;
}

}  // namespace rankine
