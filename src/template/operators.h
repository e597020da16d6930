#pragma once
#include "template/nodes.h"
#include "template/render_state.h"

// Python's operators. Each fails, with the place of `state`, where Python raises.
namespace rankine {

// "str", "int", ...: the type as Python names it.
std::string type_name(const TemplateValue& value);
bool truth(const TemplateValue& value);
bool equal(RenderState& state, const TemplateValue& left, const TemplateValue& right);
bool less(RenderState& state, const TemplateValue& left, const TemplateValue& right);
bool contains(RenderState& state, const TemplateValue& whole, const TemplateValue& part);
bool compare(RenderState& state, Comparison comparison, const TemplateValue& left,
             const TemplateValue& right);

// add, subtract, multiply, divide, floor_divide, modulo and power.
TemplateValue calculate(RenderState& state, ExpressionKind operation, const TemplateValue& left,
                        const TemplateValue& right);
TemplateValue negative(RenderState& state, const TemplateValue& value);
// Whether Python could look it up in a dict; what can be looked up need not be a key here.
bool is_hashable(const TemplateValue& value);
// Fails with what is undefined about `value` when it is.
void need_defined(RenderState& state, const TemplateValue& value);
// len(), and what a for loop goes over: the items of a list, characters, keys; a generator is used
// up. Each fails for values without.
int64_t length_of(RenderState& state, const TemplateValue& value);
std::vector<TemplateValue> items_of(RenderState& state, const TemplateValue& value);
bool is_iterable(const TemplateValue& value);

}  // namespace rankine
