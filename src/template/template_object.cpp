#include "template/template_object.h"

#include "template/operators.h"

namespace rankine {

bool TemplateObject::attribute(RenderState&, std::string_view, TemplateValue&) {
  return false;
}

bool NamespaceObject::attribute(RenderState&, std::string_view name, TemplateValue& value) {
  const TemplateValue* found = attributes.find(name);
  if (found != nullptr) value = *found;
  return found != nullptr;
}

bool CyclerObject::attribute(RenderState&, std::string_view name, TemplateValue& value) {
  if (name == "current") value = items[next];
  return name == "current";
}

void GeneratorObject::fill(RenderState& state) {
  if (make_ == nullptr) return;
  const RenderState::Level level(state);
  const Make make = std::exchange(make_, nullptr);
  items_ = make(state);
  state.make_items(items_.size());
  for (const TemplateValue& item : items_) depth = std::max(depth, item.depth() + 1);
}

bool GeneratorObject::take(RenderState& state, TemplateValue& item) {
  fill(state);
  if (next_ >= items_.size()) return false;
  item = items_[next_++];
  return true;
}

std::vector<TemplateValue> GeneratorObject::rest(RenderState& state) {
  fill(state);
  const std::vector<TemplateValue> items = std::exchange(items_, {});
  return {items.begin() + static_cast<ptrdiff_t>(std::exchange(next_, 0)), items.end()};
}

}  // namespace rankine
