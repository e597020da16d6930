#include <algorithm>

#include "template/numbers.h"
#include "template/parser.h"

namespace rankine {
namespace {

constexpr size_t most_levels = 120;
constexpr uint32_t most_height = 300;

bool names_constant(const std::string& name) {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

TemplateValue named_constant(const std::string& name) {
  if (name == "none" || name == "None") return TemplateValue::none();
  return TemplateValue::boolean(name == "true" || name == "True");
}

}  // namespace

TemplateParser::Level::Level(TemplateParser& parser) : parser_(parser) {
  if (++parser_.level_ <= most_levels) return;
  --parser_.level_;
  parser_.fail(parser_.now().place, "more than 120 brackets and blocks within each other");
}

ExpressionPtr TemplateParser::make(ExpressionKind kind, Place place) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->place = place;
  return made;
}

ExpressionPtr TemplateParser::with_parts(ExpressionPtr whole) const {
  for (const ExpressionPtr& part : whole->parts)
    if (part != nullptr) whole->height = std::max(whole->height, part->height + 1);
  if (whole->height > most_height)
    fail(whole->place,
         fmt::format("an expression of more than {} steps one upon the other", most_height));
  return whole;
}

ExpressionPtr TemplateParser::binary(ExpressionKind kind, Place place, ExpressionPtr left,
                                     ExpressionPtr right) const {
  ExpressionPtr made = make(kind, place);
  made->parts.push_back(std::move(left));
  made->parts.push_back(std::move(right));
  return with_parts(std::move(made));
}

ExpressionPtr TemplateParser::parse_expression(bool with_condition) {
  const Level level(*this);
  const Place place = now().place;
  ExpressionPtr value = parse_or();
  while (with_condition && skip_name("if")) {
    ExpressionPtr whole = make(ExpressionKind::condition, place);
    whole->constant =
        TemplateValue::undefined("the inline if-expression was false and has no else");
    whole->parts.push_back(parse_or());
    whole->parts.push_back(std::move(value));
    whole->parts.push_back(skip_name("else") ? parse_expression() : nullptr);
    value = with_parts(std::move(whole));
  }
  return value;
}

ExpressionPtr TemplateParser::parse_or() {
  ExpressionPtr left = parse_and();
  for (Place place = now().place; skip_name("or"); place = now().place)
    left = binary(ExpressionKind::logical_or, place, std::move(left), parse_and());
  return left;
}

ExpressionPtr TemplateParser::parse_and() {
  ExpressionPtr left = parse_not();
  for (Place place = now().place; skip_name("and"); place = now().place)
    left = binary(ExpressionKind::logical_and, place, std::move(left), parse_not());
  return left;
}

ExpressionPtr TemplateParser::parse_not() {
  const Place place = now().place;
  if (!skip_name("not")) return parse_compare();
  const Level level(*this);
  ExpressionPtr made = make(ExpressionKind::logical_not, place);
  made->parts.push_back(parse_not());
  return with_parts(std::move(made));
}

bool TemplateParser::take_comparison(Comparison& comparison) {
  static const std::pair<std::string_view, Comparison> signs[] = {
      {"==", Comparison::equal},  {"!=", Comparison::unequal},
      {"<", Comparison::less},    {"<=", Comparison::less_equal},
      {">", Comparison::greater}, {">=", Comparison::greater_equal}};
  for (const auto& [sign, meaning] : signs) {
    comparison = meaning;
    if (skip_sign(sign)) return true;
  }
  comparison = Comparison::in;
  if (skip_name("in")) return true;
  if (!now().is_name("not") || !ahead().is_name("in")) return false;
  take();
  take();
  comparison = Comparison::not_in;
  return true;
}

ExpressionPtr TemplateParser::parse_compare() {
  ExpressionPtr left = parse_sum();
  Place place = now().place;
  Comparison comparison{};
  if (!take_comparison(comparison)) return left;
  ExpressionPtr made = make(ExpressionKind::compare, place);
  made->parts.push_back(std::move(left));
  do {
    made->comparisons.push_back(comparison);
    made->parts.push_back(parse_sum());
  } while (take_comparison(comparison));
  return with_parts(std::move(made));
}

ExpressionPtr TemplateParser::parse_sum() {
  ExpressionPtr left = parse_concatenation();
  while (now().is_sign("+") || now().is_sign("-")) {
    const Token sign = take();
    left = binary(sign.text == "+" ? ExpressionKind::add : ExpressionKind::subtract, sign.place,
                  std::move(left), parse_concatenation());
  }
  return left;
}

ExpressionPtr TemplateParser::parse_concatenation() {
  ExpressionPtr first = parse_product();
  if (!now().is_sign("~")) return first;
  ExpressionPtr made = make(ExpressionKind::concatenate, now().place);
  made->parts.push_back(std::move(first));
  while (skip_sign("~")) made->parts.push_back(parse_product());
  return with_parts(std::move(made));
}

ExpressionPtr TemplateParser::parse_product() {
  ExpressionPtr left = parse_power();
  while (now().is_sign("*") || now().is_sign("/") || now().is_sign("//") || now().is_sign("%")) {
    const Token sign = take();
    const ExpressionKind kind = sign.text == "*"    ? ExpressionKind::multiply
                                : sign.text == "/"  ? ExpressionKind::divide
                                : sign.text == "//" ? ExpressionKind::floor_divide
                                                    : ExpressionKind::modulo;
    left = binary(kind, sign.place, std::move(left), parse_power());
  }
  return left;
}

ExpressionPtr TemplateParser::parse_power() {
  ExpressionPtr left = parse_unary();
  for (Place place = now().place; skip_sign("**"); place = now().place)
    left = binary(ExpressionKind::power, place, std::move(left), parse_unary());
  return left;
}

ExpressionPtr TemplateParser::parse_unary(bool with_filters) {
  ExpressionPtr value;
  if (now().is_sign("-") || now().is_sign("+")) {
    const Level level(*this);
    const Token sign = take();
    value = make(sign.text == "-" ? ExpressionKind::negate : ExpressionKind::plus, sign.place);
    value->parts.push_back(parse_unary(false));
    value = with_parts(std::move(value));
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return with_filters ? parse_filters(std::move(value)) : std::move(value);
}

ExpressionPtr TemplateParser::parse_primary() {
  const Token& token = now();
  const Place place = token.place;
  if (token.is_sign("[")) return parse_list();
  if (token.is_sign("{")) return parse_dict();
  if (skip_sign("(")) {
    ExpressionPtr inner = parse_tuple({.parenthesised = true});
    expect_sign(")");
    return inner;
  }
  ExpressionPtr value = make(ExpressionKind::constant, place);
  if (token.kind == TokenKind::name) {
    value->text = take().text;
    if (names_constant(value->text)) {
      value->constant = named_constant(value->text);
    } else {
      value->kind = ExpressionKind::name;
      value->constant = TemplateValue::undefined(fmt::format("'{}' is undefined", value->text));
    }
  } else if (token.kind == TokenKind::text) {
    std::string text;
    while (now().kind == TokenKind::text) text += take().text;
    value->constant = TemplateValue::text(std::move(text));
  } else if (token.kind == TokenKind::integer || token.kind == TokenKind::real) {
    std::string fault;
    value->constant = number_value(token.text, token.kind == TokenKind::real, fault);
    if (!fault.empty()) fail(place, fault);
    take();
  } else {
    fail_here("an expression");
  }
  return value;
}

ExpressionPtr TemplateParser::parse_list() {
  ExpressionPtr made = make(ExpressionKind::list, take().place);
  while (!now().is_sign("]")) {
    if (!made->parts.empty()) expect_sign(",");
    if (now().is_sign("]")) break;
    made->parts.push_back(parse_expression());
  }
  expect_sign("]");
  return with_parts(std::move(made));
}

ExpressionPtr TemplateParser::parse_dict() {
  ExpressionPtr made = make(ExpressionKind::dict, take().place);
  while (!now().is_sign("}")) {
    if (!made->parts.empty()) expect_sign(",");
    if (now().is_sign("}")) break;
    made->parts.push_back(parse_expression());
    expect_sign(":");
    made->parts.push_back(parse_expression());
  }
  expect_sign("}");
  return with_parts(std::move(made));
}

ExpressionPtr TemplateParser::parse_tuple(const TupleEnd& end) {
  const Place place = now().place;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (true) {
    if (!parts.empty()) expect_sign(",");
    if (now().kind == TokenKind::print_end || now().kind == TokenKind::block_end ||
        now().is_sign(")") || (!end.word.empty() && now().is_name(end.word)))
      break;
    parts.push_back(end.simple ? parse_primary() : parse_expression(end.condition));
    if (!now().is_sign(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return std::move(parts[0]);
  if (!is_tuple && !end.parenthesised) fail_here("an expression");
  ExpressionPtr made = make(ExpressionKind::tuple, place);
  made->parts = std::move(parts);
  return with_parts(std::move(made));
}

ExpressionPtr TemplateParser::parse_postfix(ExpressionPtr inner) {
  while (true) {
    if (now().is_sign(".") || now().is_sign("["))
      inner = parse_subscript(std::move(inner));
    else if (now().is_sign("("))
      inner = parse_call(std::move(inner));
    else
      return inner;
  }
}

ExpressionPtr TemplateParser::parse_filters(ExpressionPtr inner) {
  while (true) {
    if (skip_sign("|"))
      inner = parse_filter(std::move(inner));
    else if (now().is_name("is"))
      inner = parse_test(std::move(inner));
    else if (now().is_sign("("))
      inner = parse_call(std::move(inner));
    else
      return inner;
  }
}

ExpressionPtr TemplateParser::parse_subscript(ExpressionPtr inner) {
  const Token sign = take();
  if (sign.text == ".") {
    const Token name = take();
    if (name.kind == TokenKind::name) {
      ExpressionPtr made = make(ExpressionKind::attribute, sign.place);
      made->text = name.text;
      made->parts.push_back(std::move(inner));
      return with_parts(std::move(made));
    }
    if (name.kind != TokenKind::integer) fail(name.place, "expected a name or a number behind '.'");
    ExpressionPtr key = make(ExpressionKind::constant, name.place);
    std::string fault;
    key->constant = number_value(name.text, false, fault);
    if (!fault.empty()) fail(name.place, fault);
    return binary(ExpressionKind::item, sign.place, std::move(inner), std::move(key));
  }
  ExpressionPtr made = parse_subscribed(std::move(inner), sign.place);
  if (now().is_sign(",")) fail(now().place, "several keys in one [ ] are not supported");
  expect_sign("]");
  return made;
}

// What stands in [ ]: a key, or a slice.
ExpressionPtr TemplateParser::parse_subscribed(ExpressionPtr inner, Place place) {
  const auto at_end = [&] {
    return now().is_sign(":") || now().is_sign("]") || now().is_sign(",");
  };
  if (now().is_sign("]")) fail_here("an expression");
  ExpressionPtr first = now().is_sign(":") ? nullptr : parse_expression();
  if (!skip_sign(":"))
    return binary(ExpressionKind::item, place, std::move(inner), std::move(first));
  ExpressionPtr made = make(ExpressionKind::slice, place);
  made->parts.push_back(std::move(inner));
  made->parts.push_back(std::move(first));
  made->parts.push_back(at_end() ? nullptr : parse_expression());
  made->parts.push_back(skip_sign(":") && !at_end() ? parse_expression() : nullptr);
  return with_parts(std::move(made));
}

void TemplateParser::parse_arguments(Expression& call) {
  const Place place = now().place;
  ExpressionPtr list, dict;
  expect_sign("(");
  for (bool comma = false; !now().is_sign(")"); comma = true) {
    if (comma) expect_sign(",");
    if (now().is_sign(")")) break;
    const bool named = now().kind == TokenKind::name && ahead().is_sign("=");
    const bool is_list = now().is_sign("*"), is_dict = now().is_sign("**");
    const bool plain = !named && !is_list && !is_dict;
    if (dict != nullptr || (list != nullptr && (is_list || plain)) ||
        (plain && !call.keywords.empty()))
      fail(place, "positional arguments come first, then *list and named ones, then **dict");
    if (!plain) {
      if (named) call.keywords.push_back(now().text);
      take();
    }
    if (named) take();
    ExpressionPtr value = parse_expression();
    if (is_list)
      list = std::move(value);
    else if (is_dict)
      dict = std::move(value);
    else
      call.parts.push_back(std::move(value));
  }
  expect_sign(")");
  call.spreads_list = list != nullptr;
  call.spreads_dict = dict != nullptr;
  if (list != nullptr) call.parts.push_back(std::move(list));
  if (dict != nullptr) call.parts.push_back(std::move(dict));
}

ExpressionPtr TemplateParser::parse_call(ExpressionPtr callee) {
  ExpressionPtr made = make(ExpressionKind::call, now().place);
  made->parts.push_back(std::move(callee));
  parse_arguments(*made);
  return with_parts(std::move(made));
}

ExpressionPtr TemplateParser::parse_filter(ExpressionPtr inner) {
  ExpressionPtr made = make(ExpressionKind::filter, now().place);
  made->text = take_name();
  while (skip_sign(".")) made->text += "." + take_name();
  made->parts.push_back(std::move(inner));
  if (now().is_sign("(")) parse_arguments(*made);
  return with_parts(std::move(made));
}

ExpressionPtr TemplateParser::parse_test(ExpressionPtr inner) {
  const Place place = take().place;
  const bool negated = skip_name("not");
  ExpressionPtr made = make(ExpressionKind::test, now().place);
  made->text = take_name();
  made->parts.push_back(std::move(inner));
  const Token& next = now();
  const bool operand = next.kind == TokenKind::name || next.kind == TokenKind::text ||
                       next.kind == TokenKind::integer || next.kind == TokenKind::real ||
                       next.is_sign("[") || next.is_sign("{");
  if (next.is_sign("(")) {
    parse_arguments(*made);
  } else if (operand && !next.is_name("else") && !next.is_name("or") && !next.is_name("and")) {
    if (next.is_name("is")) fail(next.place, "tests with 'is' cannot follow each other");
    const Level level(*this);
    made->parts.push_back(parse_postfix(parse_primary()));
  }
  made = with_parts(std::move(made));
  if (!negated) return made;
  ExpressionPtr whole = make(ExpressionKind::logical_not, place);
  whole->parts.push_back(std::move(made));
  return with_parts(std::move(whole));
}

}  // namespace rankine
