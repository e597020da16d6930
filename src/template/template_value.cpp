#include "template/template_value.h"

#include <algorithm>

#include "template/template_object.h"

namespace rankine {
namespace {

constexpr size_t indexed_from = 16;  // entries of a dict; below, looking along them is quicker

bool scalars_equal(const TemplateValue& left, const TemplateValue& right) {
  if (left.is_number() && right.is_number())
    return left.is_integral() && right.is_integral() ? left.as_integer() == right.as_integer()
                                                     : left.as_real() == right.as_real();
  if (left.kind() != right.kind()) return false;
  if (left.is(ValueKind::text)) return left.as_text().text() == right.as_text().text();
  return left.is(ValueKind::none) || left.is(ValueKind::undefined);
}

}  // namespace

TemplateValue TemplateValue::undefined(std::string why) {
  TemplateValue value;
  value.held_ = std::make_shared<const std::string>(std::move(why));
  return value;
}

TemplateValue TemplateValue::none(uint32_t origin) {
  TemplateValue value;
  value.kind_ = ValueKind::none;
  value.origin_ = origin;
  return value;
}

TemplateValue TemplateValue::boolean(bool boolean, uint32_t origin) {
  TemplateValue value = integer(boolean ? 1 : 0, origin);
  value.kind_ = ValueKind::boolean;
  return value;
}

TemplateValue TemplateValue::integer(int64_t integer, uint32_t origin) {
  TemplateValue value;
  value.kind_ = ValueKind::integer;
  value.integer_ = integer;
  value.origin_ = origin;
  return value;
}

TemplateValue TemplateValue::real(double real, uint32_t origin) {
  TemplateValue value;
  value.kind_ = ValueKind::real;
  value.real_ = real;
  value.origin_ = origin;
  return value;
}

TemplateValue TemplateValue::text(MarkedText text) {
  TemplateValue value;
  value.kind_ = ValueKind::text;
  value.origin_ = text.first_origin();
  value.held_ = std::make_shared<const MarkedText>(std::move(text));
  return value;
}

TemplateValue TemplateValue::text(std::string text, uint32_t origin) {
  return TemplateValue::text(MarkedText(std::move(text), origin));
}

TemplateValue TemplateValue::list(std::vector<TemplateValue> items, uint32_t origin) {
  TemplateList list;
  list.items = std::move(items);
  return TemplateValue::list(std::move(list), origin);
}

TemplateValue TemplateValue::list(TemplateList list, uint32_t origin) {
  TemplateValue value;
  value.kind_ = ValueKind::list;
  value.origin_ = origin;
  list.depth = 1;
  for (const TemplateValue& item : list.items) {
    list.depth = std::max(list.depth, item.depth() + 1);
    if (value.origin_ == 0) value.origin_ = item.origin();
  }
  value.held_ = std::make_shared<const TemplateList>(std::move(list));
  return value;
}

TemplateValue TemplateValue::dict(TemplateDict dict, uint32_t origin) {
  TemplateValue value;
  value.kind_ = ValueKind::dict;
  value.origin_ = origin;
  dict.depth = 1;
  for (const auto& [key, item] : dict.entries) {
    dict.depth = std::max(dict.depth, item.depth() + 1);
    if (value.origin_ == 0) value.origin_ = key.origin() != 0 ? key.origin() : item.origin();
  }
  value.held_ = std::make_shared<const TemplateDict>(std::move(dict));
  return value;
}

TemplateValue TemplateValue::object(std::shared_ptr<TemplateObject> object) {
  TemplateValue value;
  value.kind_ = ValueKind::object;
  value.held_ = std::move(object);
  return value;
}

const std::string& TemplateValue::why() const {
  static const std::string nothing;
  return held_ == nullptr ? nothing : held<std::string>();
}

double TemplateValue::as_real() const {
  return kind_ == ValueKind::real ? real_ : static_cast<double>(integer_);
}

TemplateObject& TemplateValue::as_object() const {
  return *static_cast<TemplateObject*>(const_cast<void*>(held_.get()));
}

TemplateValue TemplateValue::as_markup() const {
  TemplateValue value = *this;
  value.markup_ = true;
  return value;
}

size_t TemplateValue::depth() const {
  if (kind_ == ValueKind::list) return as_list().depth;
  if (kind_ == ValueKind::dict) return as_dict().depth;
  if (kind_ == ValueKind::object) return as_object().depth;
  return 0;
}

bool TemplateValue::is_same_as(const TemplateValue& other) const {
  if (kind_ != other.kind_) return false;
  if (kind_ == ValueKind::list || kind_ == ValueKind::dict || kind_ == ValueKind::object)
    return held_ == other.held_;
  return scalars_equal(*this, other);
}

size_t TemplateDict::place_of(std::string_view key) const {
  if (entries.size() >= indexed_from) {
    const auto found = places_.find(key);
    return found == places_.end() ? entries.size() : found->second;
  }
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].first.is(ValueKind::text) && entries[i].first.as_text().text() == key) return i;
  return entries.size();
}

size_t TemplateDict::place_of(const TemplateValue& key) const {
  if (key.is(ValueKind::text)) return place_of(key.as_text().view());
  for (size_t i = 0; i < entries.size(); ++i)
    if (scalars_equal(entries[i].first, key)) return i;
  return entries.size();
}

void TemplateDict::set(TemplateValue key, TemplateValue value) {
  const size_t place = place_of(key);
  if (place < entries.size()) {
    entries[place].second = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
  if (entries.size() < indexed_from) return;
  for (size_t i = entries.size() == indexed_from ? 0 : place; i < entries.size(); ++i)
    if (entries[i].first.is(ValueKind::text)) places_.emplace(entries[i].first.as_text().view(), i);
}

void TemplateDict::set(std::string key, TemplateValue value, uint32_t origin) {
  set(TemplateValue::text(std::move(key), origin), std::move(value));
}

const TemplateValue* TemplateDict::find(std::string_view key) const {
  const size_t place = place_of(key);
  return place < entries.size() ? &entries[place].second : nullptr;
}

const TemplateValue* TemplateDict::find(const TemplateValue& key) const {
  const size_t place = place_of(key);
  return place < entries.size() ? &entries[place].second : nullptr;
}

}  // namespace rankine
