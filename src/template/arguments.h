#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "template/render_state.h"

namespace rankine {

struct Arguments {
  std::vector<TemplateValue> positional;
  std::vector<std::pair<std::string, TemplateValue>> named;
};

// Arguments put to the parameters of something built in, as Python does. Fails for what does not
// fit: too many, twice, unknown, missing.
class Parameters {
 public:
  // The first `required` of `names` must be given; a name that begins with '*' cannot be used as
  // one. `who` is named in errors.
  Parameters(RenderState& state, std::string_view who, const Arguments& arguments,
             std::initializer_list<std::string_view> names, size_t required = 0);

  bool has(size_t i) const { return values_[i] != nullptr; }
  // None counts as not given.
  bool has_some(size_t i) const { return has(i) && !values_[i]->is(ValueKind::none); }
  const TemplateValue& value(size_t i) const { return *values_[i]; }
  TemplateValue value_or(size_t i, const TemplateValue& otherwise) const {
    return has(i) ? value(i) : otherwise;
  }
  bool truth(size_t i, bool otherwise) const;
  // Each fails for another type.
  int64_t integer(size_t i, int64_t otherwise) const;
  const MarkedText& text(size_t i) const;

 private:
  RenderState& state_;
  std::string_view who_;
  std::vector<std::string_view> names_;
  std::vector<const TemplateValue*> values_;
};

void need_no_arguments(RenderState& state, std::string_view who, const Arguments& arguments);

}  // namespace rankine
