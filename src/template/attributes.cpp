#include "template/attributes.h"

#include <algorithm>

#include "template/operators.h"
#include "template/template_object.h"

namespace rankine {
namespace {

constexpr std::string_view list_methods[] = {"count", "index", "copy"};
constexpr std::string_view dict_methods[] = {"get", "items", "keys", "values", "copy"};
// Methods that change what they belong to, which a template may not.
constexpr std::string_view changing_list[] = {"append", "clear",  "extend",  "insert",
                                              "pop",    "remove", "reverse", "sort"};
constexpr std::string_view changing_dict[] = {"clear", "pop", "popitem", "setdefault", "update"};

template <size_t N>
bool is_one_of(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(names, names + N, name) != names + N;
}

TemplateValue absent(const TemplateValue& value, const TemplateValue& key) {
  const std::string of = value.is(ValueKind::none) ? "None" : type_name(value) + " object";
  if (key.is(ValueKind::text))
    return TemplateValue::undefined(
        fmt::format("'{}' has no attribute '{}'", of, key.as_text().text()));
  if (key.is_integral())
    return TemplateValue::undefined(fmt::format("{} has no element {}", of, key.as_integer()));
  return TemplateValue::undefined(fmt::format("{} has no such element", of));
}

TemplateValue refused(const TemplateValue& value, std::string_view name) {
  return TemplateValue::undefined(fmt::format(
      "'{}' of a '{}' is not for templates, which change nothing", name, type_name(value)));
}

// Attributes alone, no items.
bool find_attribute(RenderState& state, const TemplateValue& value, const std::string& name,
                    TemplateValue& found) {
  if (name.starts_with("__") && !value.is(ValueKind::object)) {
    found = refused(value, name);
    return true;
  }
  if (value.is(ValueKind::object)) {
    const ObjectKind kind = value.as_object().kind;
    if ((kind == ObjectKind::loop && (name == "cycle" || name == "changed")) ||
        (kind == ObjectKind::cycler && (name == "next" || name == "reset"))) {
      found = state.object(std::make_shared<MethodObject>(value, name));
      return true;
    }
    return value.as_object().attribute(state, name, found);
  }
  if ((value.is(ValueKind::list) && value.as_list().form == ListForm::list &&
       is_one_of(name, changing_list)) ||
      (value.is(ValueKind::dict) && is_one_of(name, changing_dict))) {
    found = refused(value, name);
    return true;
  }
  if (has_method(value, name)) {
    found = state.object(std::make_shared<MethodObject>(value, name));
    return true;
  }
  if (!value.is(ValueKind::list)) return false;
  const TemplateList& list = value.as_list();
  if (list.form == ListForm::group && (name == "grouper" || name == "list")) {
    found = list.items[name == "grouper" ? 0 : 1];
    return true;
  }
  if (list.form != ListForm::range || (name != "start" && name != "stop" && name != "step"))
    return false;
  found = TemplateValue::integer(name == "start"  ? list.start
                                 : name == "stop" ? list.stop
                                                  : list.step);
  return true;
}

bool is_view(ListForm form) {
  return form == ListForm::keys || form == ListForm::values || form == ListForm::items;
}

bool find_item(RenderState& state, const TemplateValue& value, const TemplateValue& key,
               TemplateValue& found) {
  if (value.is(ValueKind::dict)) {
    if (key.is(ValueKind::list) || key.is(ValueKind::dict) || key.is(ValueKind::object))
      return false;
    const TemplateValue* item = value.as_dict().find(key);
    if (item != nullptr) found = *item;
    return item != nullptr;
  }
  if (!key.is_integral()) return false;
  int64_t index = key.as_integer();
  if (value.is(ValueKind::list) && !is_view(value.as_list().form)) {
    const auto& items = value.as_list().items;
    const auto size = static_cast<int64_t>(items.size());
    if (index < 0) index += size;
    if (index < 0 || index >= size) return false;
    found = items[static_cast<size_t>(index)];
    return true;
  }
  if (!value.is(ValueKind::text)) return false;
  found = character_of(state, value.as_text(), index);
  return !found.is(ValueKind::undefined);
}

}  // namespace

bool has_method(const TemplateValue& value, std::string_view name) {
  if (value.is(ValueKind::text)) return is_text_method(name);
  if (value.is(ValueKind::dict)) return is_one_of(name, dict_methods);
  return value.is(ValueKind::list) && !is_view(value.as_list().form) &&
         is_one_of(name, list_methods) &&
         (name != "copy" || value.as_list().form == ListForm::list);
}

TemplateValue attribute_of(RenderState& state, const TemplateValue& value,
                           const std::string& name) {
  need_defined(state, value);
  TemplateValue found;
  if (value.is(ValueKind::dict) && !has_method(value, name) && !name.starts_with("__") &&
      !is_one_of(name, changing_dict)) {
    const TemplateValue* item = value.as_dict().find(name);
    return item != nullptr ? *item : absent(value, TemplateValue::text(name));
  }
  if (find_attribute(state, value, name, found)) return found;
  return absent(value, TemplateValue::text(name));
}

TemplateValue item_of(RenderState& state, const TemplateValue& value, const TemplateValue& key) {
  need_defined(state, value);
  TemplateValue found;
  if (find_item(state, value, key, found)) return found;
  if (key.is(ValueKind::text) && find_attribute(state, value, key.as_text().text(), found))
    return found;
  return absent(value, key);
}

TemplateValue call_method(RenderState& state, const TemplateValue& value, const std::string& name,
                          const Arguments& arguments) {
  if (value.is(ValueKind::text)) return call_text_method(state, value.as_text(), name, arguments);
  if (value.is(ValueKind::list)) {
    const auto& items = value.as_list().items;
    if (name == "copy") {
      need_no_arguments(state, name, arguments);
      return value;
    }
    const Parameters given(state, name, arguments, {"value", "start", "stop"}, 1);
    int64_t count = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!equal(state, items[i], given.value(0))) continue;
      if (name == "index" && static_cast<int64_t>(i) >= given.integer(1, 0))
        return TemplateValue::integer(static_cast<int64_t>(i));
      ++count;
    }
    if (name == "index") state.fail("the value is not in the list");
    return TemplateValue::integer(count);
  }
  const TemplateDict& dict = value.as_dict();
  if (name == "get") {
    const Parameters given(state, name, arguments, {"key", "default"}, 1);
    const TemplateValue& key = given.value(0);
    if (!is_hashable(key)) state.fail("a '{}' cannot be a key", type_name(key));
    const TemplateValue* item = dict.find(key);
    return item != nullptr ? *item : given.value_or(1, TemplateValue::none());
  }
  need_no_arguments(state, name, arguments);
  if (name == "copy") return value;
  std::vector<TemplateValue> items;
  state.make_items(dict.entries.size());
  for (const auto& [key, item] : dict.entries) {
    if (name == "items")
      items.push_back(state.list({key, item}, ListForm::tuple));
    else
      items.push_back(name == "keys" ? key : item);
  }
  return state.list(std::move(items),
                    name == "items"  ? ListForm::items
                    : name == "keys" ? ListForm::keys
                                     : ListForm::values,
                    value.origin());
}

}  // namespace rankine
