#pragma once
#include "template/arguments.h"

// What a value has: its items, its attributes, its methods, as Jinja's sandbox shows them.
namespace rankine {

// value.name: an attribute, else an item; undefined where there is neither.
TemplateValue attribute_of(RenderState& state, const TemplateValue& value, const std::string& name);
// value[key]: an item, else an attribute.
TemplateValue item_of(RenderState& state, const TemplateValue& value, const TemplateValue& key);
// value[start:stop:step]; each may be none.
struct SliceBounds {
  TemplateValue start, stop, step;
};
TemplateValue slice_of(RenderState& state, const TemplateValue& value, const SliceBounds& bounds);
// One character, counted from the end where `index` is negative; undefined outside the text.
TemplateValue character_of(RenderState& state, const MarkedText& text, int64_t index);

// Whether values of its kind have this method, callable here.
bool has_method(const TemplateValue& value, std::string_view name);
// value.name(arguments); fails where there is no such method.
TemplateValue call_method(RenderState& state, const TemplateValue& value, const std::string& name,
                          const Arguments& arguments);
// The same of texts.
bool is_text_method(std::string_view name);
TemplateValue call_text_method(RenderState& state, const MarkedText& text, std::string_view name,
                               const Arguments& arguments);

}  // namespace rankine
