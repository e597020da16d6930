#include <algorithm>
#include <ctime>

#include "template/attributes.h"
#include "template/operators.h"
#include "template/renderer.h"
#include "template/text_units.h"
#include "template/value_text.h"

namespace rankine {
namespace {

constexpr uint64_t most_range = 100'000;  // as Jinja's sandbox has it

// Takes the named argument out; false where it is not given.
bool take_named(Arguments& arguments, const std::string& name, TemplateValue& value) {
  const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found == arguments.named.end()) return false;
  value = std::move(found->second);
  arguments.named.erase(found);
  return true;
}

}  // namespace

TemplateValue Renderer::call(const TemplateValue& callee, Arguments& arguments) {
  need_defined(state_, callee);
  if (!callee.is(ValueKind::object)) state_.fail("a '{}' cannot be called", type_name(callee));
  TemplateObject& object = callee.as_object();
  switch (object.kind) {
    case ObjectKind::macro:
      return call_macro(static_cast<MacroObject&>(object), arguments);
    case ObjectKind::method:
      return call_object_method(static_cast<MethodObject&>(object), arguments);
    case ObjectKind::function:
      return call_function(static_cast<FunctionObject&>(object).name, arguments);
    case ObjectKind::joiner: {
      need_no_arguments(state_, "joiner", arguments);
      auto& joiner = static_cast<JoinerObject&>(object);
      return std::exchange(joiner.used, true) ? joiner.separator
                                              : TemplateValue::text(MarkedText());
    }
    case ObjectKind::loop: {
      const auto& loop = static_cast<LoopObject&>(object);
      if (loop.definition == nullptr || loop.outer == nullptr)
        state_.fail("only a loop marked 'recursive' can be called, from within itself");
      const Parameters given(state_, "loop", arguments, {"iterable"}, 1);
      MarkedText out;
      const std::shared_ptr<Activation> before = std::exchange(now_, loop.outer);
      recursive_loop(*loop.definition, given.value(0), loop.depth0 + 1, out);
      now_ = before;
      return state_.text(std::move(out));
    }
    default:
      state_.fail("a '{}' cannot be called", type_name(callee));
  }
}

TemplateValue Renderer::call_object_method(const MethodObject& method, const Arguments& arguments) {
  if (!method.receiver.is(ValueKind::object))
    return call_method(state_, method.receiver, method.name, arguments);
  TemplateObject& object = method.receiver.as_object();
  if (object.kind == ObjectKind::loop) {
    auto& loop = static_cast<LoopObject&>(object);
    if (!arguments.named.empty()) state_.fail("'{}' takes no named arguments", method.name);
    if (method.name == "cycle") return loop.cycle(state_, arguments.positional);
    return TemplateValue::boolean(loop.changed(state_, arguments.positional));
  }
  need_no_arguments(state_, method.name, arguments);
  auto& cycler = static_cast<CyclerObject&>(object);
  if (method.name == "reset") {
    cycler.next = 0;
    return TemplateValue::none();
  }
  const size_t now = cycler.next;
  cycler.next = (now + 1) % cycler.items.size();
  return cycler.items[now];
}

void Renderer::bind_parameters(const Statement& macro, Arguments& arguments) {
  const size_t count = macro.parameters.size();
  const size_t first_default = macro.kind == StatementKind::call_block ? 1 : 0;
  const size_t without_default = count - (macro.expressions.size() - first_default);
  for (size_t i = 0; i < count; ++i) {
    TemplateValue& place = now_->slots[macro.parameter_slots[i]];
    if (i < arguments.positional.size())
      place = arguments.positional[i];
    else if (TemplateValue named; take_named(arguments, macro.parameters[i], named))
      place = std::move(named);
    else if (i >= without_default)
      place = TemplateValue(evaluate(*macro.expressions[first_default + i - without_default]));
    else
      place = TemplateValue::undefined(
          fmt::format("parameter '{}' was not provided", macro.parameters[i]));
  }
}

// caller, kwargs and varargs, where the macro asks for them.
void Renderer::bind_specials(const Statement& macro, Arguments& arguments) {
  if (macro.takes[Statement::caller]) {
    TemplateValue caller;
    if (!take_named(arguments, "caller", caller) || caller.is(ValueKind::none))
      caller = TemplateValue::undefined("no caller is defined");
    now_->slots[macro.special_slots[Statement::caller]] = caller;
  }
  if (macro.takes[Statement::keyword_arguments]) {
    TemplateDict named;
    for (auto& [name, value] : std::exchange(arguments.named, {}))
      named.set(name, std::move(value));
    now_->slots[macro.special_slots[Statement::keyword_arguments]] = state_.dict(std::move(named));
  }
  const size_t count = std::min(macro.parameters.size(), arguments.positional.size());
  if (macro.takes[Statement::further_arguments])
    now_->slots[macro.special_slots[Statement::further_arguments]] = state_.list(
        {arguments.positional.begin() + static_cast<ptrdiff_t>(count), arguments.positional.end()},
        ListForm::tuple);
  else if (count < arguments.positional.size())
    state_.fail("'{}' takes at most {} arguments, {} are given", macro.name,
                macro.parameters.size(), arguments.positional.size());
  if (!arguments.named.empty())
    state_.fail("'{}' has no parameter '{}'", macro.name, arguments.named[0].first);
}

TemplateValue Renderer::call_macro(const MacroObject& macro, Arguments& arguments) {
  const RenderState::Level level(state_);
  const Statement& definition = *macro.definition;
  const Place place = state_.place();
  const std::shared_ptr<Activation> before =
      std::exchange(now_, activation(definition.slots, macro.closure));
  enter(definition.scopes[0]);
  bind_parameters(definition, arguments);
  state_.at(place);
  bind_specials(definition, arguments);
  MarkedText out;
  execute(definition.bodies[0], out);
  now_ = before;
  state_.at(place);
  return state_.text(std::move(out));
}

TemplateValue Renderer::call_function(const std::string& name, const Arguments& arguments) {
  if (name == "range") return make_range(arguments);
  if (name == "namespace") return make_namespace(arguments);
  if (name == "dict") return state_.dict(make_dict(arguments));
  if (name == "strftime_now") return time_text(arguments);
  if (name == "joiner") {
    const Parameters given(state_, name, arguments, {"sep"});
    return state_.object(
        std::make_shared<JoinerObject>(given.value_or(0, TemplateValue::text(", "))));
  }
  if (name == "cycler") {
    if (arguments.positional.empty()) state_.fail("'cycler' needs at least one value");
    return state_.object(std::make_shared<CyclerObject>(arguments.positional));
  }
  const Parameters given(state_, name, arguments, {"message"}, 1);
  state_.refuse(text_of(state_, given.value(0)).text());
}

TemplateValue Renderer::make_range(const Arguments& arguments) {
  const Parameters given(state_, "range", arguments, {"start", "stop", "step"}, 1);
  const bool only_stop = arguments.positional.size() == 1;
  TemplateList range;
  range.form = ListForm::range;
  range.start = only_stop ? 0 : given.integer(0, 0);
  range.stop = given.integer(only_stop ? 0 : 1, 0);
  range.step = given.integer(2, 1);
  if (range.step == 0) state_.fail("'range' with a step of 0");
  // Unsigned, so that no distance overflows.
  const bool up = range.step > 0, any = up ? range.start < range.stop : range.start > range.stop;
  const auto from = static_cast<uint64_t>(range.start), to = static_cast<uint64_t>(range.stop);
  const uint64_t distance = any ? (up ? to - from : from - to) : 0;
  const uint64_t size =
      up ? static_cast<uint64_t>(range.step) : 0 - static_cast<uint64_t>(range.step);
  const uint64_t count = distance == 0 ? 0 : (distance - 1) / size + 1;
  if (count > most_range) state_.fail("'range' of more than {} items", most_range);
  state_.make_items(static_cast<size_t>(count) + 2);
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
    range.items.push_back(TemplateValue::integer(
        static_cast<int64_t>(from + static_cast<uint64_t>(i) * static_cast<uint64_t>(range.step))));
  return TemplateValue::list(std::move(range));
}

TemplateDict Renderer::make_dict(const Arguments& arguments) {
  TemplateDict dict;
  if (arguments.positional.size() > 1)
    state_.fail("at most one value makes a dict, {} are given", arguments.positional.size());
  if (!arguments.positional.empty()) {
    const TemplateValue& from = arguments.positional[0];
    if (from.is(ValueKind::dict)) {
      state_.make_items(4 * from.as_dict().entries.size());
      dict = from.as_dict();
    } else {
      for (const TemplateValue& item : items_of(state_, from)) {
        const std::vector<TemplateValue> pair = items_of(state_, item);
        if (pair.size() != 2) state_.fail("a dict is made of pairs");
        if (pair[0].is(ValueKind::list) || pair[0].is(ValueKind::dict) ||
            pair[0].is(ValueKind::object) || pair[0].is(ValueKind::undefined))
          state_.fail("a '{}' cannot be a key", type_name(pair[0]));
        state_.look(dict.entries.size());
        dict.set(pair[0], pair[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) dict.set(name, value);
  return dict;
}

TemplateValue Renderer::make_namespace(const Arguments& arguments) {
  auto space = std::make_shared<NamespaceObject>();
  space->attributes = make_dict(arguments);
  state_.make_items(4);
  namespaces_.push_back(space);
  return state_.object(std::move(space));
}

TemplateValue Renderer::time_text(const Arguments& arguments) {
  const Parameters given(state_, "strftime_now", arguments, {"format"}, 1);
  const MarkedText& format = given.text(0);
  if (!state_.unix_time()) state_.fail("the template asks for the time, and none is given");
  const std::time_t seconds = *state_.unix_time();
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) state_.fail("the time cannot be told as a date");
  std::string pattern;
  const std::string& text = format.text();
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (text[i] == '%' && (next == 'f' || next == 'z' || next == 'Z')) {
      pattern += next == 'f' ? "000000" : "";  // a time without fractions and without a zone
      ++i;
    } else {
      pattern.push_back(text[i] == '\0' ? ' ' : text[i]);
      if (text[i] == '%' && next == '%') {
        pattern.push_back('%');
        ++i;
      }
    }
  }
  if (pattern.size() > 1000) state_.fail("a format of the time with more than 1000 bytes");
  pattern.push_back('.');  // so that an empty text can be told from one that is too long
  std::string out(64 << 10, '\0');
  const size_t size = std::strftime(out.data(), out.size(), pattern.c_str(), &parts);
  if (size == 0) state_.fail("a format of the time that gives too long a text");
  out.resize(size - 1);
  return state_.text(std::move(out), format.first_origin());
}

}  // namespace rankine
