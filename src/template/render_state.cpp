#include "template/render_state.h"

#include "template/template_object.h"

namespace rankine {

std::string located(const std::string& name, Place place, std::string_view what) {
  return fmt::format("'{}': line {}, column {}: {}", name, place.line, place.column, what);
}

void RenderState::fail_with(const std::string& what) const {
  throw Error(ErrorKind::data, located(name_, place_, what));
}

void RenderState::refuse(const std::string& said) const {
  throw TemplateRefusal(located(name_, place_, said), said);
}

void RenderState::fail_steps() const {
  fail("the template takes more than {} steps", limits_.steps);
}

void RenderState::fail_memory() const {
  fail("the template makes more than {} bytes of texts and lists", limits_.memory_bytes);
}

void RenderState::fail_depth() {
  --depth_;
  fail("more than {} calls, blocks and expressions within each other", limits_.depth);
}

TemplateValue RenderState::bounded(TemplateValue value) {
  if (value.depth() > limits_.depth)
    fail("more than {} lists and dicts within each other", limits_.depth);
  return value;
}

TemplateValue RenderState::list(std::vector<TemplateValue> items, ListForm form, uint32_t origin) {
  make_items(items.size() + 2);
  TemplateList list;
  list.items = std::move(items);
  list.form = form;
  return bounded(TemplateValue::list(std::move(list), origin));
}

TemplateValue RenderState::dict(TemplateDict dict, uint32_t origin) {
  make_items(4 * dict.entries.size() + 2);
  return bounded(TemplateValue::dict(std::move(dict), origin));
}

TemplateValue RenderState::object(std::shared_ptr<TemplateObject> object) {
  make(sizeof(CyclerObject));
  return bounded(TemplateValue::object(std::move(object)));
}

}  // namespace rankine
