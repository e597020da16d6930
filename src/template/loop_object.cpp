#include "template/loop_object.h"

#include "template/operators.h"

namespace rankine {

LoopObject::LoopObject(RenderState& state, const TemplateValue& over)
    : TemplateObject(ObjectKind::loop), state_(&state), source_(over) {
  if (over.is(ValueKind::list))
    items_ = &over.as_list().items;
  else if (!over.is(ValueKind::object) || over.as_object().kind != ObjectKind::generator)
    own_ = items_of(state, over);
}

bool LoopObject::pull(TemplateValue& item) {
  while (true) {
    if (source_.is(ValueKind::object)) {
      if (!static_cast<GeneratorObject&>(source_.as_object()).take(*state_, item)) return false;
    } else {
      if (next_ >= items_->size()) return false;
      item = (*items_)[next_++];
    }
    if (!passes || passes(item)) return true;
  }
}

bool LoopObject::has_next() {
  if (!ahead_.empty()) return true;
  TemplateValue item;
  if (!pull(item)) return false;
  ahead_.push_back(std::move(item));
  return true;
}

bool LoopObject::advance() {
  if (!has_next()) return false;
  ++index0;
  before_ = std::move(current_);
  current_ = std::move(ahead_.front());
  ahead_.pop_front();
  return true;
}

int64_t LoopObject::length() {
  if (!length_) {
    if (!passes && source_.is(ValueKind::list)) {
      length_ = static_cast<int64_t>(items_->size());
    } else {
      TemplateValue item;
      while (pull(item)) ahead_.push_back(std::move(item));
      length_ = static_cast<int64_t>(ahead_.size()) + index0 + 1;
    }
  }
  return *length_;
}

void LoopObject::close() {
  passes = nullptr;
  outer.reset();
  source_ = TemplateValue();
  own_.clear();
  items_ = &own_;
  next_ = 0;
  ahead_.clear();
  before_ = TemplateValue();
  current_ = TemplateValue();
  last_changed_.reset();
  if (!length_) length_ = index0 + 1;
}

bool LoopObject::attribute(RenderState& state, std::string_view name, TemplateValue& value) {
  const auto number = [&](int64_t of) {
    value = TemplateValue::integer(of);
    return true;
  };
  if (name == "index") return number(index0 + 1);
  if (name == "index0") return number(index0);
  if (name == "length") return number(length());
  if (name == "revindex") return number(length() - index0);
  if (name == "revindex0") return number(length() - index0 - 1);
  if (name == "depth") return number(depth0 + 1);
  if (name == "depth0") return number(depth0);
  if (name == "first" || name == "last") {
    value = TemplateValue::boolean(name == "first" ? index0 == 0 : !has_next());
  } else if (name == "previtem") {
    value = index0 > 0 ? before_ : TemplateValue::undefined("there is no previous item");
  } else if (name == "nextitem") {
    value = has_next() ? ahead_.front() : TemplateValue::undefined("there is no next item");
  } else {
    return false;  // cycle and changed are methods, which the renderer binds
  }
  state.step();
  return true;
}

TemplateValue LoopObject::cycle(RenderState& state,
                                const std::vector<TemplateValue>& values) const {
  if (values.empty()) state.fail("'cycle' needs at least one value");
  return values[static_cast<size_t>(std::max<int64_t>(0, index0)) % values.size()];
}

bool LoopObject::changed(RenderState& state, const std::vector<TemplateValue>& values) {
  bool same = last_changed_ && last_changed_->size() == values.size();
  for (size_t i = 0; same && i < values.size(); ++i)
    same = equal(state, (*last_changed_)[i], values[i]);
  if (same) return false;
  state.make_items(values.size());
  last_changed_ = values;
  return true;
}

}  // namespace rankine
