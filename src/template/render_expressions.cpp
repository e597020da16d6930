#include "template/attributes.h"
#include "template/filters.h"
#include "template/operators.h"
#include "template/renderer.h"
#include "template/value_tests.h"
#include "template/value_text.h"

namespace rankine {

TemplateValue Renderer::evaluate(const Expression& expression) {
  state_.step();
  if (expression.kind == ExpressionKind::constant) return expression.constant;
  if (expression.kind == ExpressionKind::name) {
    const TemplateValue& value = slot(expression.slot);
    return value.is(ValueKind::undefined) && value.why().empty() ? expression.constant : value;
  }
  const RenderState::Level level(state_);
  return evaluate_inner(expression);
}

TemplateValue Renderer::evaluate_inner(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::tuple:
    case ExpressionKind::list:
    case ExpressionKind::dict:
      return evaluate_literal(expression);
    case ExpressionKind::attribute:
    case ExpressionKind::item:
      return evaluate_access(expression);
    case ExpressionKind::slice:
      return evaluate_slice(expression);
    case ExpressionKind::call:
      return evaluate_call(expression);
    case ExpressionKind::filter:
      return evaluate_filter(expression);
    case ExpressionKind::test:
      return evaluate_test(expression);
    case ExpressionKind::concatenate:
      return evaluate_concatenation(expression);
    case ExpressionKind::compare:
      return evaluate_comparison(expression);
    case ExpressionKind::condition:
    case ExpressionKind::logical_and:
    case ExpressionKind::logical_or:
    case ExpressionKind::logical_not:
      return evaluate_condition(expression);
    default:
      return evaluate_operator(expression);
  }
}

TemplateValue Renderer::evaluate_literal(const Expression& literal) {
  if (literal.kind == ExpressionKind::dict) {
    TemplateDict dict;
    for (size_t i = 0; i < literal.parts.size(); i += 2) {
      TemplateValue key = evaluate(*literal.parts[i]);
      TemplateValue value = evaluate(*literal.parts[i + 1]);
      state_.at(literal.parts[i]->place);
      if (key.is(ValueKind::list) || key.is(ValueKind::dict) || key.is(ValueKind::object) ||
          key.is(ValueKind::undefined))
        state_.fail("a '{}' cannot be a key", type_name(key));
      dict.set(std::move(key), std::move(value));
    }
    return state_.dict(std::move(dict));
  }
  std::vector<TemplateValue> items;
  items.reserve(literal.parts.size());
  for (const ExpressionPtr& part : literal.parts) items.push_back(evaluate(*part));
  state_.at(literal.place);
  return state_.list(std::move(items),
                     literal.kind == ExpressionKind::tuple ? ListForm::tuple : ListForm::list);
}

TemplateValue Renderer::evaluate_operator(const Expression& expression) {
  const TemplateValue left = evaluate(*expression.parts[0]);
  if (expression.kind == ExpressionKind::negate || expression.kind == ExpressionKind::plus) {
    state_.at(expression.place);
    if (expression.kind == ExpressionKind::negate) return negative(state_, left);
    need_defined(state_, left);
    if (!left.is_number()) state_.fail("a '{}' is no number", type_name(left));
    return left.is(ValueKind::boolean) ? TemplateValue::integer(left.as_integer(), left.origin())
                                       : left;
  }
  const TemplateValue right = evaluate(*expression.parts[1]);
  state_.at(expression.place);
  return calculate(state_, expression.kind, left, right);
}

TemplateValue Renderer::evaluate_concatenation(const Expression& expression) {
  MarkedText out;
  for (const ExpressionPtr& part : expression.parts) {
    const TemplateValue value = evaluate(*part);
    state_.at(expression.place);
    if (value.is(ValueKind::text)) {
      state_.make(value.as_text().size());
      out.append(value.as_text());
    } else {
      out.append(text_of(state_, value));
    }
  }
  return state_.text(std::move(out));
}

TemplateValue Renderer::evaluate_comparison(const Expression& expression) {
  TemplateValue left = evaluate(*expression.parts[0]);
  for (size_t i = 0; i < expression.comparisons.size(); ++i) {
    TemplateValue right = evaluate(*expression.parts[i + 1]);
    state_.at(expression.place);
    if (!compare(state_, expression.comparisons[i], left, right))
      return TemplateValue::boolean(false);
    left = std::move(right);
  }
  return TemplateValue::boolean(true);
}

TemplateValue Renderer::evaluate_condition(const Expression& expression) {
  TemplateValue first = evaluate(*expression.parts[0]);
  const bool is = truth(first);
  switch (expression.kind) {
    case ExpressionKind::logical_not:
      return TemplateValue::boolean(!is);
    case ExpressionKind::logical_and:
      return is ? evaluate(*expression.parts[1]) : first;
    case ExpressionKind::logical_or:
      return is ? first : evaluate(*expression.parts[1]);
    default:
      if (is) return evaluate(*expression.parts[1]);
      return expression.parts[2] != nullptr ? evaluate(*expression.parts[2]) : expression.constant;
  }
}

TemplateValue Renderer::evaluate_access(const Expression& expression) {
  const TemplateValue of = evaluate(*expression.parts[0]);
  if (expression.kind == ExpressionKind::item) {
    const TemplateValue key = evaluate(*expression.parts[1]);
    state_.at(expression.place);
    return item_of(state_, of, key);
  }
  state_.at(expression.place);
  return attribute_of(state_, of, expression.text);
}

TemplateValue Renderer::evaluate_slice(const Expression& expression) {
  const TemplateValue of = evaluate(*expression.parts[0]);
  SliceBounds bounds{TemplateValue::none(), TemplateValue::none(), TemplateValue::none()};
  if (expression.parts[1] != nullptr) bounds.start = evaluate(*expression.parts[1]);
  if (expression.parts[2] != nullptr) bounds.stop = evaluate(*expression.parts[2]);
  if (expression.parts[3] != nullptr) bounds.step = evaluate(*expression.parts[3]);
  state_.at(expression.place);
  return slice_of(state_, of, bounds);
}

Arguments Renderer::arguments_of(const Expression& call, const TemplateValue* caller) {
  Arguments arguments;
  size_t at = 1;
  for (; at < call.positional(); ++at) arguments.positional.push_back(evaluate(*call.parts[at]));
  for (const std::string& name : call.keywords)
    arguments.named.emplace_back(name, evaluate(*call.parts[at++]));
  if (call.spreads_list) {
    const TemplateValue list = evaluate(*call.parts[at++]);
    state_.at(call.place);
    for (TemplateValue& item : items_of(state_, list))
      arguments.positional.push_back(std::move(item));
  }
  if (call.spreads_dict) {
    const TemplateValue dict = evaluate(*call.parts[at++]);
    state_.at(call.place);
    if (!dict.is(ValueKind::dict)) state_.fail("'**' needs a dict, not a '{}'", type_name(dict));
    for (const auto& [key, value] : dict.as_dict().entries) {
      if (!key.is(ValueKind::text)) state_.fail("'**' needs texts as keys");
      state_.make_items(3);
      arguments.named.emplace_back(key.as_text().text(), value);
    }
  }
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  state_.at(call.place);
  state_.make_items(arguments.positional.size() + 3 * arguments.named.size());
  return arguments;
}

TemplateValue Renderer::evaluate_filter(const Expression& filter) {
  const TemplateValue input =
      filter.parts[0] != nullptr ? evaluate(*filter.parts[0]) : *block_input_;
  const Arguments arguments = arguments_of(filter);
  return apply_filter(state_, filter.text, input, arguments);
}

TemplateValue Renderer::evaluate_test(const Expression& test) {
  const TemplateValue input = evaluate(*test.parts[0]);
  const Arguments arguments = arguments_of(test);
  return TemplateValue::boolean(apply_test(state_, test.text, input, arguments));
}

TemplateValue Renderer::evaluate_call(const Expression& call, const TemplateValue* caller) {
  const Expression& callee = *call.parts[0];
  if (callee.kind == ExpressionKind::attribute) {  // a method, without making an object of it
    const TemplateValue of = evaluate(*callee.parts[0]);
    if (has_method(of, callee.text)) {
      const Arguments arguments = arguments_of(call, caller);
      return call_method(state_, of, callee.text, arguments);
    }
    state_.at(callee.place);
    const TemplateValue method = attribute_of(state_, of, callee.text);
    Arguments arguments = arguments_of(call, caller);
    return this->call(method, arguments);
  }
  const TemplateValue value = evaluate(callee);
  Arguments arguments = arguments_of(call, caller);
  return this->call(value, arguments);
}

}  // namespace rankine
