#pragma once
#include "template/arguments.h"
#include "template/template_object.h"

namespace rankine {

bool is_filter(std::string_view name);
// input|name(arguments); fails for an unknown name.
TemplateValue apply_filter(RenderState& state, std::string_view name, const TemplateValue& input,
                           const Arguments& arguments);

// What a filter is given.
struct FilterCall {
  RenderState& state;
  std::string_view name;
  const TemplateValue& input;
  const Arguments& arguments;

  Parameters given(std::initializer_list<std::string_view> names, size_t required = 0) const {
    return Parameters(state, name, arguments, names, required);
  }
};

// A generator that runs when somebody looks at its items.
template <class Make>
TemplateValue later(const FilterCall& call, Make&& make) {
  call.state.make_items(call.arguments.positional.size() + 3 * call.arguments.named.size() + 4);
  return call.state.object(std::make_shared<GeneratorObject>(std::forward<Make>(make), call.input));
}
// A filter whose items are made then.
template <std::vector<TemplateValue> (*items)(const FilterCall&)>
TemplateValue made_later(const FilterCall& call) {
  return later(call, [name = std::string(call.name), input = call.input,
                      arguments = call.arguments](RenderState& state) {
    return items({state, name, input, arguments});
  });
}

using Filter = TemplateValue (*)(const FilterCall&);
struct FilterEntry {
  std::string_view name;
  Filter filter;
};
// The filters by what they work on; null for other names.
Filter text_filter(std::string_view name);
Filter list_filter(std::string_view name);
Filter selecting_filter(std::string_view name);
Filter number_filter(std::string_view name);

// What "a.b.0" leads to, items of items; `path` may be an integer. Undefined on the way becomes
// `otherwise` where that is not undefined.
TemplateValue follow(RenderState& state, const TemplateValue& value, const TemplateValue& path,
                     const TemplateValue& otherwise = {});
// For comparisons that do not tell capitals: a text in small letters, other values as they are.
TemplateValue without_case(RenderState& state, const TemplateValue& value);

}  // namespace rankine
