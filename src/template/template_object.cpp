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

}  // namespace rankine
