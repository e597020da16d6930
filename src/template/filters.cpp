#include "template/filters.h"

#include "template/attributes.h"
#include "template/operators.h"
#include "template/text_tools.h"

namespace rankine {
namespace {

Filter filter_of(std::string_view name) {
  for (const auto lookup : {text_filter, list_filter, selecting_filter, number_filter})
    if (const Filter found = lookup(name)) return found;
  return nullptr;
}

}  // namespace

bool is_filter(std::string_view name) {
  return filter_of(name) != nullptr;
}

TemplateValue apply_filter(RenderState& state, std::string_view name, const TemplateValue& input,
                           const Arguments& arguments) {
  state.step();
  const Filter filter = filter_of(name);
  if (filter == nullptr) state.fail("there is no filter '{}'", name);
  return filter({state, name, input, arguments});
}

TemplateValue follow(RenderState& state, const TemplateValue& value, const TemplateValue& path,
                     const TemplateValue& otherwise) {
  if (path.is(ValueKind::none)) return value;
  TemplateValue at = value;
  const auto go = [&](const TemplateValue& key) {
    state.step();
    at = item_of(state, at, key);
    if (at.is(ValueKind::undefined) && !otherwise.is(ValueKind::undefined)) at = otherwise;
  };
  if (!path.is(ValueKind::text)) {
    go(path);
    return at;
  }
  for (const MarkedText& part : split(path.as_text(), {.separator = "."})) {
    const std::string& name = part.text();
    const bool index = !name.empty() && name.size() < 10 &&
                       name.find_first_not_of("0123456789") == std::string::npos;
    go(index ? TemplateValue::integer(std::stol(name)) : TemplateValue::text(name));
  }
  return at;
}

TemplateValue without_case(RenderState& state, const TemplateValue& value) {
  if (!value.is(ValueKind::text)) return value;
  state.look(8 * value.as_text().size());
  return state.text(lower_case(value.as_text()));
}

}  // namespace rankine
