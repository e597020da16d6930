#include "template/parser.h"

#include <algorithm>

#include "template/scopes.h"

namespace rankine {
namespace {

// What reads other templates, and what chat templates have no use for.
constexpr std::string_view refused_tags[] = {"include", "import", "from",       "extends", "block",
                                             "do",      "trans",  "autoescape", "debug"};

bool is_one_of(const Token& token, std::initializer_list<std::string_view> words) {
  return token.kind == TokenKind::name &&
         std::find(words.begin(), words.end(), token.text) != words.end();
}

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::end:
      return "the end of the template";
    case TokenKind::data:
      return "text";
    case TokenKind::print_begin:
      return "'{{'";
    case TokenKind::print_end:
      return "'}}'";
    case TokenKind::block_begin:
      return "'{%'";
    case TokenKind::block_end:
      return "'%}'";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace

void TemplateParser::fail(Place place, const std::string& what) const {
  throw Error(ErrorKind::data, located(name_, place, what));
}

void TemplateParser::fail_here(const std::string& expected) const {
  fail(now().place, fmt::format("expected {}, found {}", expected, shown(now())));
}

bool TemplateParser::skip_sign(std::string_view sign) {
  if (!now().is_sign(sign)) return false;
  take();
  return true;
}

bool TemplateParser::skip_name(std::string_view name) {
  if (!now().is_name(name)) return false;
  take();
  return true;
}

void TemplateParser::expect_sign(std::string_view sign) {
  if (!skip_sign(sign)) fail_here(fmt::format("'{}'", sign));
}

void TemplateParser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_here(fmt::format("'{}'", name));
}

std::string TemplateParser::take_name() {
  if (now().kind != TokenKind::name) fail_here("a name");
  return take().text;
}

void TemplateParser::expect_kind(TokenKind kind, std::string_view what) {
  if (now().kind != kind) fail_here(std::string(what));
  take();
}

Statements TemplateParser::parse_all() {
  Statements all = parse_body({}, Token());
  if (now().kind != TokenKind::end) fail_here("the end of the template");
  return all;
}

std::unique_ptr<Statement> TemplateParser::start(StatementKind kind) const {
  auto made = std::make_unique<Statement>();
  made->kind = kind;
  made->place = now().place;
  return made;
}

// Statements up to a block that begins with one of `ends`, its word still to be read.
Statements TemplateParser::parse_body(std::initializer_list<std::string_view> ends,
                                      const Token& opened) {
  Statements body;
  while (now().kind != TokenKind::end) {
    if (now().kind == TokenKind::data) {
      auto text = start(StatementKind::text);
      text->text = MarkedText(take().text, 0);
      body.push_back(std::move(text));
    } else if (now().kind == TokenKind::print_begin) {
      take();
      auto print = start(StatementKind::print);
      print->expressions.push_back(parse_tuple({}));
      expect_kind(TokenKind::print_end, "'}}'");
      body.push_back(std::move(print));
    } else {
      take();
      if (is_one_of(now(), ends)) return body;
      body.push_back(parse_statement());
      expect_kind(TokenKind::block_end, "'%}'");
    }
  }
  if (ends.size() > 0)
    fail(opened.place, fmt::format("the block '{}' has no '{}'", opened.text, *(ends.end() - 1)));
  return body;
}

// The rest of an opening block, what is in it, and the closing word.
Statements TemplateParser::parse_block(std::initializer_list<std::string_view> ends,
                                       const Token& opened) {
  skip_sign(":");
  expect_kind(TokenKind::block_end, "'%}'");
  return parse_body(ends, opened);
}

std::unique_ptr<Statement> TemplateParser::parse_statement() {
  const Level level(*this);
  if (now().kind != TokenKind::name) fail_here("the name of a block");
  const std::string& tag = now().text;
  if (tag == "for") return parse_for();
  if (tag == "if") return parse_if();
  if (tag == "set") return parse_set();
  if (tag == "with") return parse_with();
  if (tag == "macro") return parse_macro();
  if (tag == "call") return parse_call_block();
  if (tag == "filter") return parse_filter_block();
  if (tag == "print") return parse_print();
  if (tag == "generation") return parse_generation();
  if (tag == "break" || tag == "continue") return parse_loop_control();
  for (const std::string_view refused : refused_tags)
    if (tag == refused)
      fail(now().place, fmt::format("'{}' is not for chat templates, which are one text that reads "
                                    "no file and changes nothing",
                                    tag));
  fail(now().place, fmt::format("there is no block '{}' here", tag));
}

ExpressionPtr TemplateParser::parse_target(std::string_view end_word, bool with_member) {
  if (with_member && now().kind == TokenKind::name && ahead().is_sign(".")) {
    ExpressionPtr member = make(ExpressionKind::member, now().place);
    ExpressionPtr space = make(ExpressionKind::name, now().place);
    space->text = take_name();
    take();
    member->text = take_name();
    member->parts.push_back(std::move(space));
    return member;
  }
  ExpressionPtr target = parse_tuple({.simple = true, .word = end_word});
  check_target(*target);
  return target;
}

void TemplateParser::check_target(const Expression& target) const {
  if (target.kind == ExpressionKind::tuple) {
    for (const ExpressionPtr& part : target.parts) check_target(*part);
  } else if (target.kind != ExpressionKind::name) {
    fail(target.place, "only names and tuples of names can be assigned to");
  } else if (loops_ > 0 && target.text == "loop") {
    fail(target.place, "'loop' cannot be assigned to within a for block");
  }
}

std::unique_ptr<Statement> TemplateParser::parse_for() {
  auto loop = start(StatementKind::loop);
  const Token opened = take();
  ++loops_;
  loop->targets.push_back(parse_target("in", false));
  expect_name("in");
  loop->expressions.push_back(parse_tuple({.condition = false, .word = "recursive"}));
  loop->expressions.push_back(skip_name("if") ? parse_expression() : nullptr);
  loop->recursive = skip_name("recursive");
  loop->bodies.push_back(parse_block({"else", "endfor"}, opened));
  --loops_;
  loop->bodies.emplace_back();
  if (take().text == "else") {
    loop->bodies[1] = parse_block({"endfor"}, opened);
    take();
  }
  return loop;
}

std::unique_ptr<Statement> TemplateParser::parse_if() {
  auto branch = start(StatementKind::branch);
  const Token opened = take();
  while (true) {
    branch->expressions.push_back(parse_tuple({.condition = false}));
    branch->bodies.push_back(parse_block({"elif", "else", "endif"}, opened));
    const std::string word = take().text;
    if (word == "elif") continue;
    branch->bodies.emplace_back();
    if (word == "else") {
      branch->bodies.back() = parse_block({"endif"}, opened);
      take();
    }
    return branch;
  }
}

std::unique_ptr<Statement> TemplateParser::parse_set() {
  auto set = start(StatementKind::set);
  const Token opened = take();
  set->targets.push_back(parse_target("", true));
  if (skip_sign("=")) {
    set->expressions.push_back(parse_tuple({}));
    return set;
  }
  set->kind = StatementKind::set_block;
  ExpressionPtr filter;
  while (skip_sign("|")) filter = parse_filter(std::move(filter));
  set->expressions.push_back(std::move(filter));
  set->bodies.push_back(parse_block({"endset"}, opened));
  take();
  return set;
}

std::unique_ptr<Statement> TemplateParser::parse_with() {
  auto with = start(StatementKind::with);
  const Token opened = take();
  while (now().kind != TokenKind::block_end && !now().is_sign(":")) {
    if (!with->targets.empty()) expect_sign(",");
    const size_t loops = std::exchange(loops_, 0);  // `loop` may be named here
    with->targets.push_back(parse_target("", false));
    loops_ = loops;
    expect_sign("=");
    with->expressions.push_back(parse_expression());
  }
  with->bodies.push_back(parse_block({"endwith"}, opened));
  take();
  return with;
}

void TemplateParser::parse_signature(Statement& macro) {
  const size_t before = macro.expressions.size();
  expect_sign("(");
  while (!now().is_sign(")")) {
    if (!macro.parameters.empty()) expect_sign(",");
    ExpressionPtr parameter = make(ExpressionKind::name, now().place);
    parameter->text = take_name();
    check_target(*parameter);
    if (std::find(macro.parameters.begin(), macro.parameters.end(), parameter->text) !=
        macro.parameters.end())
      fail(parameter->place, fmt::format("the parameter '{}' stands twice", parameter->text));
    macro.parameters.push_back(parameter->text);
    if (skip_sign("="))
      macro.expressions.push_back(parse_expression());
    else if (macro.expressions.size() > before)
      fail(parameter->place, "a parameter without a default behind one with a default");
  }
  expect_sign(")");
}

std::unique_ptr<Statement> TemplateParser::parse_macro() {
  auto macro = start(StatementKind::macro);
  const Token opened = take();
  macro->name = take_name();
  const size_t loops = std::exchange(loops_, 0);
  parse_signature(*macro);
  macro->bodies.push_back(parse_block({"endmacro"}, opened));
  loops_ = loops;
  take();
  return macro;
}

std::unique_ptr<Statement> TemplateParser::parse_call_block() {
  auto call = start(StatementKind::call_block);
  const Token opened = take();
  call->expressions.push_back(nullptr);
  const size_t loops = std::exchange(loops_, 0);
  if (now().is_sign("(")) parse_signature(*call);
  call->expressions[0] = parse_expression();
  if (call->expressions[0]->kind != ExpressionKind::call) fail(opened.place, "'call' needs a call");
  call->bodies.push_back(parse_block({"endcall"}, opened));
  loops_ = loops;
  take();
  return call;
}

std::unique_ptr<Statement> TemplateParser::parse_filter_block() {
  auto block = start(StatementKind::filter_block);
  const Token opened = take();
  ExpressionPtr filter = parse_filter(nullptr);
  while (skip_sign("|")) filter = parse_filter(std::move(filter));
  block->expressions.push_back(std::move(filter));
  block->bodies.push_back(parse_block({"endfilter"}, opened));
  take();
  return block;
}

std::unique_ptr<Statement> TemplateParser::parse_print() {
  take();
  auto print = start(StatementKind::print);
  while (now().kind != TokenKind::block_end) {
    if (!print->expressions.empty()) expect_sign(",");
    print->expressions.push_back(parse_expression());
  }
  return print;
}

std::unique_ptr<Statement> TemplateParser::parse_generation() {
  auto generation = start(StatementKind::generation);
  const Token opened = take();
  const size_t loops = std::exchange(loops_, 0);
  generation->bodies.push_back(parse_block({"endgeneration"}, opened));
  loops_ = loops;
  take();
  has_generation_ = true;
  return generation;
}

std::unique_ptr<Statement> TemplateParser::parse_loop_control() {
  auto control =
      start(now().text == "break" ? StatementKind::leave_loop : StatementKind::next_round);
  if (loops_ == 0) fail(now().place, fmt::format("'{}' stands outside a loop", now().text));
  take();
  return control;
}

std::unique_ptr<TemplateProgram> parse_template(std::string_view text, const std::string& name) {
  auto program = std::make_unique<TemplateProgram>();
  program->place = name;
  TemplateParser parser(template_tokens(text, name), name);
  program->body = parser.parse_all();
  program->has_generation = parser.has_generation();
  place_variables(*program);
  return program;
}

}  // namespace rankine
