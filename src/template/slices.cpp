#include <algorithm>

#include "template/attributes.h"
#include "template/operators.h"
#include "template/text_tools.h"
#include "template/text_units.h"

namespace rankine {
namespace {

// A slice of `length` items: the first, how many, and how far apart.
struct Stride {
  int64_t begin = 0, end = 0, count = 0, step = 1;
};

int64_t bound(RenderState& state, const TemplateValue& value) {
  need_defined(state, value);
  if (!value.is_integral()) state.fail("a slice goes by integers, not by a '{}'", type_name(value));
  return value.as_integer();
}

Stride stride(RenderState& state, const SliceBounds& bounds, int64_t length) {
  Stride made;
  if (!bounds.step.is(ValueKind::none)) made.step = bound(state, bounds.step);
  if (made.step == 0) state.fail("a slice of step 0");
  made.step = std::clamp<int64_t>(made.step, -length - 1, length + 1);
  const bool back = made.step < 0;
  const auto placed = [&](const TemplateValue& value, int64_t otherwise) {
    if (value.is(ValueKind::none)) return otherwise;
    int64_t at = std::clamp<int64_t>(bound(state, value), -length - 1, length + 1);
    if (at < 0) at += length;
    return std::clamp<int64_t>(at, back ? -1 : 0, back ? length - 1 : length);
  };
  made.begin = placed(bounds.start, back ? length - 1 : 0);
  made.end = placed(bounds.stop, back ? -1 : length);
  const int64_t distance = back ? made.begin - made.end : made.end - made.begin;
  const int64_t size = back ? -made.step : made.step;
  made.count = distance <= 0 ? 0 : (distance + size - 1) / size;
  return made;
}

TemplateValue text_slice(RenderState& state, const MarkedText& text, const SliceBounds& bounds) {
  const std::string_view view = text.view();
  state.look(text.size());
  const bool plain = is_ascii(view);
  const auto length = static_cast<int64_t>(plain ? view.size() : character_count(view));
  const Stride cut = stride(state, bounds, length);
  if (cut.step == 1) {
    const auto first = static_cast<size_t>(cut.begin), count = static_cast<size_t>(cut.count);
    const size_t begin = plain ? first : byte_of(view, first);
    const size_t bytes = plain ? count : byte_of(view.substr(begin), count);
    return state.text(text.slice(begin, bytes));
  }
  const MarkedText& source = cut.step < 0 ? backwards(text) : text;
  const auto begin = static_cast<size_t>(cut.step < 0 ? length - 1 - cut.begin : cut.begin);
  const auto step = static_cast<size_t>(cut.step < 0 ? -cut.step : cut.step);
  MarkedText out;
  MarkedTextReader reader(source);
  size_t at = byte_of(source.view(), begin);
  for (int64_t i = 0; i < cut.count; ++i) {
    reader.copy(at, at + character_at(source.view(), at).bytes, out);
    at += byte_of(source.view().substr(at), step);
  }
  return state.text(std::move(out));
}

TemplateValue list_slice(RenderState& state, const TemplateValue& value,
                         const SliceBounds& bounds) {
  const TemplateList& list = value.as_list();
  const Stride cut = stride(state, bounds, static_cast<int64_t>(list.items.size()));
  state.make_items(static_cast<size_t>(cut.count));
  TemplateList made;
  made.form = list.form == ListForm::group ? ListForm::tuple : list.form;
  for (int64_t i = 0; i < cut.count; ++i)
    made.items.push_back(list.items[static_cast<size_t>(cut.begin + i * cut.step)]);
  // Of a range; unsigned, as the bounds of a huge one may not fit.
  const auto at = [&](int64_t index) {
    return static_cast<int64_t>(static_cast<uint64_t>(list.start) +
                                static_cast<uint64_t>(index) * static_cast<uint64_t>(list.step));
  };
  made.start = at(cut.begin);
  made.stop = at(cut.end);
  made.step =
      static_cast<int64_t>(static_cast<uint64_t>(list.step) * static_cast<uint64_t>(cut.step));
  return TemplateValue::list(std::move(made));
}

}  // namespace

TemplateValue slice_of(RenderState& state, const TemplateValue& value, const SliceBounds& bounds) {
  need_defined(state, value);
  if (value.is(ValueKind::text)) return text_slice(state, value.as_text(), bounds);
  if (value.is(ValueKind::list) && value.as_list().form != ListForm::keys &&
      value.as_list().form != ListForm::values && value.as_list().form != ListForm::items)
    return list_slice(state, value, bounds);
  state.fail("a '{}' cannot be sliced", type_name(value));
}

TemplateValue character_of(RenderState& state, const MarkedText& text, int64_t index) {
  const std::string_view view = text.view();
  if (index < 0) {
    state.look(text.size());
    index += static_cast<int64_t>(character_count(view));
  }
  if (index < 0 || index >= static_cast<int64_t>(text.size())) return {};
  state.look(static_cast<size_t>(index));
  const size_t at = byte_of(view, static_cast<size_t>(index));
  if (at >= text.size()) return {};
  return state.text(text.slice(at, character_at(view, at).bytes));
}

}  // namespace rankine
