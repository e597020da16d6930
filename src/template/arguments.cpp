#include "template/arguments.h"

#include <algorithm>

#include "template/operators.h"

namespace rankine {

Parameters::Parameters(RenderState& state, std::string_view who, const Arguments& arguments,
                       std::initializer_list<std::string_view> names, size_t required)
    : state_(state), who_(who), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names_.size())
    state.fail("'{}' takes at most {} arguments, {} are given", who, names_.size(),
               arguments.positional.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) state.fail("'{}' has no parameter '{}'", who, name);
    const auto place = static_cast<size_t>(found - names_.begin());
    if (values_[place] != nullptr) state.fail("'{}' is given '{}' twice", who, name);
    values_[place] = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (values_[i] == nullptr) state.fail("'{}' needs its argument '{}'", who, names_[i]);
}

void need_no_arguments(RenderState& state, std::string_view who, const Arguments& arguments) {
  [[maybe_unused]] const Parameters none(state, who, arguments, {});
}

bool Parameters::truth(size_t i, bool otherwise) const {
  return has(i) ? rankine::truth(value(i)) : otherwise;
}

int64_t Parameters::integer(size_t i, int64_t otherwise) const {
  if (!has(i)) return otherwise;
  need_defined(state_, value(i));
  if (!value(i).is_integral())
    state_.fail("'{}' needs an integer for '{}', not a '{}'", who_, names_[i], type_name(value(i)));
  return value(i).as_integer();
}

const MarkedText& Parameters::text(size_t i) const {
  need_defined(state_, value(i));
  if (!value(i).is(ValueKind::text))
    state_.fail("'{}' needs a text for '{}', not a '{}'", who_, names_[i], type_name(value(i)));
  return value(i).as_text();
}

}  // namespace rankine
