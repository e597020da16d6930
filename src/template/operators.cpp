#include "template/operators.h"

#include <algorithm>
#include <cmath>

#include "template/template_object.h"
#include "template/text_units.h"

namespace rankine {
namespace {

const char* list_type(ListForm form) {
  switch (form) {
    case ListForm::list:
      return "list";
    case ListForm::tuple:
    case ListForm::group:
      return "tuple";
    case ListForm::range:
      return "range";
    case ListForm::keys:
      return "dict_keys";
    case ListForm::values:
      return "dict_values";
    case ListForm::items:
      return "dict_items";
  }
  return "list";
}

const char* object_type(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::space:
      return "Namespace";
    case ObjectKind::macro:
      return "Macro";
    case ObjectKind::loop:
      return "LoopContext";
    case ObjectKind::generator:
      return "generator";
    case ObjectKind::cycler:
      return "Cycler";
    case ObjectKind::joiner:
      return "Joiner";
    default:
      return "function";
  }
}

ListForm compared_as(ListForm form) {
  return form == ListForm::group ? ListForm::tuple : form;
}

bool lists_equal(RenderState& state, const TemplateList& left, const TemplateList& right) {
  if (compared_as(left.form) != compared_as(right.form) || left.items.size() != right.items.size())
    return false;
  if (left.form == ListForm::values) return &left == &right;
  for (size_t i = 0; i < left.items.size(); ++i)
    if (!equal(state, left.items[i], right.items[i])) return false;
  return true;
}

bool dicts_equal(RenderState& state, const TemplateDict& left, const TemplateDict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const TemplateValue* other = right.find(key);
    if (other == nullptr || !equal(state, value, *other)) return false;
  }
  return true;
}

}  // namespace

std::string type_name(const TemplateValue& value) {
  switch (value.kind()) {
    case ValueKind::undefined:
      return "Undefined";
    case ValueKind::none:
      return "NoneType";
    case ValueKind::boolean:
      return "bool";
    case ValueKind::integer:
      return "int";
    case ValueKind::real:
      return "float";
    case ValueKind::text:
      return "str";
    case ValueKind::list:
      return list_type(value.as_list().form);
    case ValueKind::dict:
      return "dict";
    case ValueKind::object:
      return object_type(value.as_object().kind);
  }
  return "";
}

void need_defined(RenderState& state, const TemplateValue& value) {
  if (!value.is(ValueKind::undefined)) return;
  state.fail("{}", value.why().empty() ? "an undefined value is used" : value.why());
}

bool is_hashable(const TemplateValue& value) {
  return !value.is(ValueKind::dict) &&
         (!value.is(ValueKind::list) || value.as_list().form != ListForm::list);
}

bool truth(const TemplateValue& value) {
  switch (value.kind()) {
    case ValueKind::undefined:
    case ValueKind::none:
      return false;
    case ValueKind::boolean:
    case ValueKind::integer:
      return value.as_integer() != 0;
    case ValueKind::real:
      return value.as_real() != 0;
    case ValueKind::text:
      return !value.as_text().empty();
    case ValueKind::list:
      return !value.as_list().items.empty();
    case ValueKind::dict:
      return !value.as_dict().entries.empty();
    case ValueKind::object:
      return true;
  }
  return true;
}

bool equal(RenderState& state, const TemplateValue& left, const TemplateValue& right) {
  state.step();
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral()) return left.as_integer() == right.as_integer();
    return left.as_real() == right.as_real();
  }
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case ValueKind::text:
      state.look(std::min(left.as_text().size(), right.as_text().size()));
      return left.as_text().text() == right.as_text().text();
    case ValueKind::list:
      return lists_equal(state, left.as_list(), right.as_list());
    case ValueKind::dict:
      return dicts_equal(state, left.as_dict(), right.as_dict());
    case ValueKind::object:
      return left.is_same_as(right);
    default:
      return true;  // undefined and none
  }
}

bool less(RenderState& state, const TemplateValue& left, const TemplateValue& right) {
  state.step();
  need_defined(state, left);
  need_defined(state, right);
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral()) return left.as_integer() < right.as_integer();
    return left.as_real() < right.as_real();
  }
  if (left.is(ValueKind::text) && right.is(ValueKind::text)) {
    state.look(std::min(left.as_text().size(), right.as_text().size()));
    return left.as_text().text() < right.as_text().text();
  }
  const auto orders = [](const TemplateValue& value) {
    return value.is(ValueKind::list) && (value.as_list().form == ListForm::list ||
                                         compared_as(value.as_list().form) == ListForm::tuple);
  };
  if (!orders(left) || !orders(right) ||
      compared_as(left.as_list().form) != compared_as(right.as_list().form))
    state.fail("a '{}' and a '{}' have no order", type_name(left), type_name(right));
  const auto &a = left.as_list().items, &b = right.as_list().items;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (!equal(state, a[i], b[i])) return less(state, a[i], b[i]);
  return a.size() < b.size();
}

bool contains(RenderState& state, const TemplateValue& whole, const TemplateValue& part) {
  switch (whole.kind()) {
    case ValueKind::undefined:
      return false;
    case ValueKind::text: {
      if (!part.is(ValueKind::text))
        state.fail("'in' a text needs a text, not a '{}'", type_name(part));
      const std::string &text = whole.as_text().text(), &wanted = part.as_text().text();
      state.look(text.size() + wanted.size());
      return wanted.empty() ||
             ::memmem(text.data(), text.size(), wanted.data(), wanted.size()) != nullptr;
    }
    case ValueKind::dict:
      if (!is_hashable(part)) state.fail("a '{}' cannot be a key", type_name(part));
      state.look(part.is(ValueKind::text) ? 0 : 64 * whole.as_dict().entries.size());
      return whole.as_dict().find(part) != nullptr;
    case ValueKind::list:
    case ValueKind::object: {
      if (!is_iterable(whole)) break;
      if (whole.is(ValueKind::list)) {
        for (const TemplateValue& item : whole.as_list().items)
          if (item.is_same_as(part) || equal(state, item, part)) return true;
        return false;
      }
      for (const TemplateValue& item : items_of(state, whole))
        if (item.is_same_as(part) || equal(state, item, part)) return true;
      return false;
    }
    default:
      break;
  }
  state.fail("a '{}' contains nothing", type_name(whole));
}

bool compare(RenderState& state, Comparison comparison, const TemplateValue& left,
             const TemplateValue& right) {
  const auto no_number = [](const TemplateValue& value) {
    return value.is(ValueKind::real) && std::isnan(value.as_real());
  };
  switch (comparison) {
    case Comparison::equal:
      return equal(state, left, right);
    case Comparison::unequal:
      return !equal(state, left, right);
    case Comparison::less:
      return less(state, left, right);
    case Comparison::greater:
      return less(state, right, left);
    case Comparison::less_equal:
      return !less(state, right, left) && !no_number(left) && !no_number(right);
    case Comparison::greater_equal:
      return !less(state, left, right) && !no_number(left) && !no_number(right);
    case Comparison::in:
      return contains(state, right, left);
    case Comparison::not_in:
      return !contains(state, right, left);
  }
  return false;
}

int64_t length_of(RenderState& state, const TemplateValue& value) {
  switch (value.kind()) {
    case ValueKind::undefined:
      return 0;
    case ValueKind::text:
      state.look(value.as_text().size());
      return static_cast<int64_t>(character_count(value.as_text().view()));
    case ValueKind::list:
      return static_cast<int64_t>(value.as_list().items.size());
    case ValueKind::dict:
      return static_cast<int64_t>(value.as_dict().entries.size());
    case ValueKind::object: {
      TemplateValue length;
      if (value.as_object().kind == ObjectKind::loop &&
          value.as_object().attribute(state, "length", length))
        return length.as_integer();
      break;
    }
    default:
      break;
  }
  state.fail("a '{}' has no length", type_name(value));
}

bool is_iterable(const TemplateValue& value) {
  return value.is(ValueKind::undefined) || value.is(ValueKind::text) || value.is(ValueKind::list) ||
         value.is(ValueKind::dict) ||
         (value.is(ValueKind::object) && value.as_object().kind == ObjectKind::generator);
}

std::vector<TemplateValue> items_of(RenderState& state, const TemplateValue& value) {
  std::vector<TemplateValue> items;
  if (!is_iterable(value)) state.fail("a '{}' has no items to go over", type_name(value));
  if (value.is(ValueKind::list)) {
    state.make_items(value.as_list().items.size());
    return value.as_list().items;
  }
  if (value.is(ValueKind::dict)) {
    state.make_items(value.as_dict().entries.size());
    for (const auto& [key, item] : value.as_dict().entries) items.push_back(key);
  } else if (value.is(ValueKind::text)) {
    const MarkedText& text = value.as_text();
    MarkedTextReader reader(text);
    for (size_t at = 0; at < text.size();) {
      const size_t end = at + character_at(text.view(), at).bytes;
      MarkedText character;
      reader.copy(at, end, character);
      state.make_items(1);
      items.push_back(state.text(std::move(character)));
      at = end;
    }
  } else if (value.is(ValueKind::object)) {
    return static_cast<GeneratorObject&>(value.as_object()).rest(state);
  }
  return items;
}

}  // namespace rankine
