#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "template/marked_text.h"

// What a template computes with: Python's values, as far as chat templates meet them. Cheap to
// copy.
namespace rankine {

enum class ValueKind : uint8_t {
  undefined,
  none,
  boolean,
  integer,
  real,
  text,
  list,
  dict,
  object  // macros, methods, namespaces and what else lives only while a template is rendered
};

struct TemplateList;
struct TemplateDict;
struct TemplateObject;

class TemplateValue {
 public:
  TemplateValue() = default;  // undefined
  static TemplateValue undefined(std::string why);
  // A value that is no text may have an origin, too: it shows when the value is printed.
  static TemplateValue none(uint32_t origin = 0);
  static TemplateValue boolean(bool value, uint32_t origin = 0);
  static TemplateValue integer(int64_t value, uint32_t origin = 0);
  static TemplateValue real(double value, uint32_t origin = 0);
  static TemplateValue text(MarkedText text);
  static TemplateValue text(std::string text, uint32_t origin = 0);
  static TemplateValue list(std::vector<TemplateValue> items, uint32_t origin = 0);
  static TemplateValue list(TemplateList list, uint32_t origin = 0);
  static TemplateValue dict(TemplateDict dict, uint32_t origin = 0);
  static TemplateValue object(std::shared_ptr<TemplateObject> object);

  ValueKind kind() const { return kind_; }
  bool is(ValueKind kind) const { return kind_ == kind; }
  bool is_number() const {  // booleans are numbers, as in Python
    return kind_ == ValueKind::boolean || kind_ == ValueKind::integer || kind_ == ValueKind::real;
  }
  bool is_integral() const { return kind_ == ValueKind::boolean || kind_ == ValueKind::integer; }
  // Each asks for a value of its kind; as_integer and as_real take any fitting number.
  const std::string& why() const;  // of an undefined value, may be empty
  bool as_boolean() const { return integer_ != 0; }
  int64_t as_integer() const { return integer_; }
  double as_real() const;
  const MarkedText& as_text() const { return held<MarkedText>(); }
  const TemplateList& as_list() const { return held<TemplateList>(); }
  const TemplateDict& as_dict() const { return held<TemplateDict>(); }
  TemplateObject& as_object() const;
  // A text that `safe` or `escape` gave: + escapes what it is joined with.
  bool is_markup() const { return markup_; }
  TemplateValue as_markup() const;

  // Of a text the first other than 0 of its characters, of a container its own or the first within.
  uint32_t origin() const { return origin_; }
  // How deep containers lie in it: 0 for what is none.
  size_t depth() const;
  // The same object in memory, or equal values of kinds that have no identity.
  bool is_same_as(const TemplateValue& other) const;

 private:
  template <class Held>
  const Held& held() const {
    return *static_cast<const Held*>(held_.get());
  }

  ValueKind kind_ = ValueKind::undefined;
  bool markup_ = false;
  uint32_t origin_ = 0;
  union {
    int64_t integer_ = 0;
    double real_;
  };
  std::shared_ptr<const void> held_;
};

// Which of Python's sequences a list stands for; they print and compare differently.
enum class ListForm : uint8_t { list, tuple, range, group, keys, values, items };

struct TemplateList {
  std::vector<TemplateValue> items;
  ListForm form = ListForm::list;
  int64_t start = 0, stop = 0, step = 1;  // of a range
  size_t depth = 1;                       // set by TemplateValue::list
};

// Keys in the order in which they were first set.
struct TemplateDict {
  using Entry = std::pair<TemplateValue, TemplateValue>;

  // Keys are texts, numbers, booleans and none.
  void set(TemplateValue key, TemplateValue value);
  void set(std::string key, TemplateValue value, uint32_t origin = 0);
  const TemplateValue* find(std::string_view key) const;
  const TemplateValue* find(const TemplateValue& key) const;

  std::vector<Entry> entries;
  size_t depth = 1;  // set by TemplateValue::dict

 private:
  size_t place_of(const TemplateValue& key) const;
  size_t place_of(std::string_view key) const;
  // Of the text keys, once there are many; the views are of the keys' own texts.
  std::unordered_map<std::string_view, size_t> places_;
};

}  // namespace rankine
