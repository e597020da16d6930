#include <algorithm>
#include <iterator>

#include "template/attributes.h"
#include "template/filters.h"
#include "template/operators.h"
#include "template/template_object.h"
#include "template/text_tools.h"
#include "template/value_text.h"

namespace rankine {
namespace {

TemplateValue length(const FilterCall& call) {
  call.given({});
  return TemplateValue::integer(length_of(call.state, call.input));
}

TemplateValue list(const FilterCall& call) {
  call.given({});
  return call.state.list(items_of(call.state, call.input), ListForm::list, call.input.origin());
}

TemplateValue first(const FilterCall& call) {
  call.given({});
  if (call.input.is(ValueKind::list) && !call.input.as_list().items.empty())
    return call.input.as_list().items.front();
  if (call.input.is(ValueKind::object) && call.input.as_object().kind == ObjectKind::generator) {
    TemplateValue item;
    if (static_cast<GeneratorObject&>(call.input.as_object()).take(call.state, item)) return item;
    return TemplateValue::undefined("there is no first item, the sequence is empty");
  }
  const std::vector<TemplateValue> items = items_of(call.state, call.input);
  return items.empty() ? TemplateValue::undefined("there is no first item, the sequence is empty")
                       : items.front();
}

TemplateValue last(const FilterCall& call) {
  call.given({});
  if (call.input.is(ValueKind::object))
    call.state.fail("a '{}' has no last item", type_name(call.input));
  if (call.input.is(ValueKind::list) && !call.input.as_list().items.empty())
    return call.input.as_list().items.back();
  const std::vector<TemplateValue> items = items_of(call.state, call.input);
  return items.empty() ? TemplateValue::undefined("there is no last item, the sequence is empty")
                       : items.back();
}

TemplateValue join(const FilterCall& call) {
  const Parameters given = call.given({"d", "attribute"});
  std::vector<MarkedText> parts;
  for (const TemplateValue& item : items_of(call.state, call.input))
    parts.push_back(
        text_of(call.state, given.has_some(1) ? follow(call.state, item, given.value(1)) : item));
  const MarkedText between = given.has(0) ? text_of(call.state, given.value(0)) : MarkedText();
  return call.state.text(joined(call.state, parts, between));
}

std::vector<TemplateValue> items(const FilterCall& call) {
  call.given({});
  std::vector<TemplateValue> pairs;
  if (!call.input.is(ValueKind::undefined)) {
    if (!call.input.is(ValueKind::dict))
      call.state.fail("'items' needs a dict, not a '{}'", type_name(call.input));
    for (const auto& [key, value] : call.input.as_dict().entries)
      pairs.push_back(call.state.list({key, value}, ListForm::tuple));
  }
  return pairs;
}

TemplateValue reverse(const FilterCall& call) {
  call.given({});
  if (call.input.is(ValueKind::text)) return call.state.text(backwards(call.input.as_text()));
  std::vector<TemplateValue> items = items_of(call.state, call.input);
  std::reverse(items.begin(), items.end());
  if (call.input.is(ValueKind::object)) return call.state.list(std::move(items));
  return later(call, [items](RenderState&) { return items; });
}

// Items with what they are compared by.
struct Keyed {
  std::vector<TemplateValue> keys;
  TemplateValue item;
  bool as_itself = false;
};

// Several keys compare as lists do, one as itself.
bool keys_less(RenderState& state, const Keyed& a, const Keyed& b) {
  if (a.as_itself) return less(state, a.keys[0], b.keys[0]);
  for (size_t i = 0; i < a.keys.size(); ++i)
    if (!equal(state, a.keys[i], b.keys[i])) return less(state, a.keys[i], b.keys[i]);
  return false;
}

std::vector<TemplateValue> sorted(RenderState& state, std::vector<Keyed> keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? keys_less(state, b, a) : keys_less(state, a, b);
  });
  std::vector<TemplateValue> items;
  state.make_items(keyed.size());
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return items;
}

std::vector<TemplateValue> paths_of(const FilterCall& call, const Parameters& given, size_t i) {
  if (!given.has_some(i)) return {TemplateValue::none()};
  if (!given.value(i).is(ValueKind::text)) return {given.value(i)};
  std::vector<TemplateValue> paths;
  for (MarkedText& path : split(given.text(i), {.separator = ","}))
    paths.push_back(call.state.text(std::move(path)));
  return paths;
}

TemplateValue key_of(const FilterCall& call, const TemplateValue& item, const TemplateValue& path,
                     bool with_case) {
  const TemplateValue key = follow(call.state, item, path);
  return with_case ? key : without_case(call.state, key);
}

TemplateValue sort(const FilterCall& call) {
  const Parameters given = call.given({"reverse", "case_sensitive", "attribute"});
  const std::vector<TemplateValue> paths = paths_of(call, given, 2);
  std::vector<Keyed> keyed;
  for (const TemplateValue& item : items_of(call.state, call.input)) {
    Keyed entry{{}, item};
    call.state.make_items(paths.size() + 2);
    for (const TemplateValue& path : paths)
      entry.keys.push_back(key_of(call, item, path, given.truth(1, false)));
    keyed.push_back(std::move(entry));
  }
  return call.state.list(sorted(call.state, std::move(keyed), given.truth(0, false)),
                         ListForm::list, call.input.origin());
}

TemplateValue dict_sort(const FilterCall& call) {
  const Parameters given = call.given({"case_sensitive", "by", "reverse"});
  if (!call.input.is(ValueKind::dict))
    call.state.fail("'dictsort' needs a dict, not a '{}'", type_name(call.input));
  const std::string by = given.has(1) ? given.text(1).text() : "key";
  if (by != "key" && by != "value") call.state.fail("'dictsort' sorts by 'key' or 'value'");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : call.input.as_dict().entries) {
    const TemplateValue& wanted = by == "key" ? key : value;
    keyed.push_back({{given.truth(0, false) ? wanted : without_case(call.state, wanted)},
                     call.state.list({key, value}, ListForm::tuple),
                     true});
  }
  return call.state.list(sorted(call.state, std::move(keyed), given.truth(2, false)),
                         ListForm::list, call.input.origin());
}

void need_hashable(const FilterCall& call, const TemplateValue& key) {
  if (!is_hashable(key))
    call.state.fail("'{}' cannot tell values of type '{}' apart", call.name, type_name(key));
}

std::vector<TemplateValue> unique(const FilterCall& call) {
  const Parameters given = call.given({"case_sensitive", "attribute"});
  const TemplateValue path = given.value_or(1, TemplateValue::none());
  std::vector<TemplateValue> seen, kept;
  for (const TemplateValue& item : items_of(call.state, call.input)) {
    const TemplateValue key = key_of(call, item, path, given.truth(0, false));
    need_hashable(call, key);
    const bool known = std::any_of(seen.begin(), seen.end(), [&](const TemplateValue& other) {
      return equal(call.state, other, key);
    });
    if (known) continue;
    call.state.make_items(2);
    seen.push_back(key);
    kept.push_back(item);
  }
  return kept;
}

TemplateValue extreme(const FilterCall& call) {
  const Parameters given = call.given({"case_sensitive", "attribute"});
  const TemplateValue path = given.value_or(1, TemplateValue::none());
  const std::vector<TemplateValue> items = items_of(call.state, call.input);
  if (items.empty()) return TemplateValue::undefined("the sequence is empty");
  size_t best = 0;
  TemplateValue best_key = key_of(call, items[0], path, given.truth(0, false));
  for (size_t i = 1; i < items.size(); ++i) {
    TemplateValue key = key_of(call, items[i], path, given.truth(0, false));
    if (call.name == "min" ? !less(call.state, key, best_key) : !less(call.state, best_key, key))
      continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

TemplateValue sum(const FilterCall& call) {
  const Parameters given = call.given({"attribute", "start"});
  TemplateValue total = given.value_or(1, TemplateValue::integer(0));
  if (total.is(ValueKind::text)) call.state.fail("'sum' adds no texts");
  for (const TemplateValue& item : items_of(call.state, call.input))
    total = calculate(call.state, ExpressionKind::add, total,
                      given.has_some(0) ? follow(call.state, item, given.value(0)) : item);
  return total;
}

std::vector<TemplateValue> batch(const FilterCall& call) {
  const Parameters given = call.given({"linecount", "fill_with"}, 1);
  const int64_t size = given.integer(0, 1);
  std::vector<TemplateValue> batches, now;
  const auto close = [&] { batches.push_back(call.state.list(std::exchange(now, {}))); };
  for (TemplateValue& item : items_of(call.state, call.input)) {
    if (static_cast<int64_t>(now.size()) == size) close();
    now.push_back(std::move(item));
  }
  if (!now.empty()) {
    if (given.has_some(1) && size > 0) {
      call.state.make_items(static_cast<size_t>(size));
      while (static_cast<int64_t>(now.size()) < size) now.push_back(given.value(1));
    }
    close();
  }
  return batches;
}

std::vector<TemplateValue> slice(const FilterCall& call) {
  const Parameters given = call.given({"slices", "fill_with"}, 1);
  const std::vector<TemplateValue> items = items_of(call.state, call.input);
  const int64_t count = given.integer(0, 1);
  if (count == 0) call.state.fail("division by zero");
  if (count < 0) return {};
  call.state.make_items(static_cast<size_t>(count));
  std::vector<TemplateValue> slices;
  size_t at = 0;
  for (size_t i = 0, all = static_cast<size_t>(count); i < all; ++i) {
    const bool longer = i < items.size() % all;
    const size_t size = items.size() / all + (longer ? 1 : 0);
    const auto begin = items.begin() + static_cast<ptrdiff_t>(at);
    std::vector<TemplateValue> part(begin, begin + static_cast<ptrdiff_t>(size));
    if (given.has_some(1) && !longer) part.push_back(given.value(1));
    slices.push_back(call.state.list(std::move(part)));
    at += size;
  }
  return slices;
}

TemplateValue group_by(const FilterCall& call) {
  const Parameters given = call.given({"attribute", "default", "case_sensitive"}, 1);
  const TemplateValue otherwise = given.has_some(1) ? given.value(1) : TemplateValue();
  const bool with_case = given.truth(2, false);
  const auto key_of_item = [&](const TemplateValue& item) {
    return follow(call.state, item, given.value(0), otherwise);
  };
  std::vector<Keyed> keyed;
  for (const TemplateValue& item : items_of(call.state, call.input)) {
    const TemplateValue key = key_of_item(item);
    keyed.push_back({{with_case ? key : without_case(call.state, key)}, item, true});
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [&](const Keyed& a, const Keyed& b) { return keys_less(call.state, a, b); });
  std::vector<TemplateValue> groups;
  for (size_t begin = 0; begin < keyed.size();) {
    std::vector<TemplateValue> members;
    size_t end = begin;
    for (; end < keyed.size() && equal(call.state, keyed[end].keys[0], keyed[begin].keys[0]); ++end)
      members.push_back(keyed[end].item);
    if (end == begin) call.state.fail("'groupby' meets a value that is not equal to itself");
    const TemplateValue name = key_of_item(members[0]);
    groups.push_back(call.state.list({name, call.state.list(std::move(members))}, ListForm::group));
    begin = end;
  }
  return call.state.list(std::move(groups));
}

constexpr FilterEntry filters[] = {{"batch", made_later<batch>},
                                   {"count", length},
                                   {"dictsort", dict_sort},
                                   {"first", first},
                                   {"groupby", group_by},
                                   {"items", made_later<items>},
                                   {"join", join},
                                   {"last", last},
                                   {"length", length},
                                   {"list", list},
                                   {"max", extreme},
                                   {"min", extreme},
                                   {"reverse", reverse},
                                   {"slice", made_later<slice>},
                                   {"sort", sort},
                                   {"sum", sum},
                                   {"unique", made_later<unique>}};

}  // namespace

Filter list_filter(std::string_view name) {
  const auto* found = std::find_if(std::begin(filters), std::end(filters),
                                   [&](const FilterEntry& entry) { return entry.name == name; });
  return found == std::end(filters) ? nullptr : found->filter;
}

}  // namespace rankine
