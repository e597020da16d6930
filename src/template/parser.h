#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "template/lexer.h"
#include "template/nodes.h"

namespace rankine {

// The statements of a template, its variables not yet placed (scopes.h does that). Error{data} with
// `name` and the place.
std::unique_ptr<TemplateProgram> parse_template(std::string_view text, const std::string& name);

class TemplateParser {
 public:
  TemplateParser(std::vector<Token> tokens, const std::string& name)
      : tokens_(std::move(tokens)), name_(name) {}

  Statements parse_all();
  bool has_generation() const { return has_generation_; }

 private:
  // Entered by what calls itself, so that no template can exhaust the stack.
  class Level {
   public:
    explicit Level(TemplateParser& parser);
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --parser_.level_; }

   private:
    TemplateParser& parser_;
  };

  // Tokens.
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool skip_sign(std::string_view sign);
  bool skip_name(std::string_view name);
  void expect_sign(std::string_view sign);
  void expect_name(std::string_view name);
  std::string take_name();
  void expect_kind(TokenKind kind, std::string_view what);
  [[noreturn]] void fail(Place place, const std::string& what) const;
  [[noreturn]] void fail_here(const std::string& expected) const;

  // Expressions.
  ExpressionPtr make(ExpressionKind kind, Place place) const;
  ExpressionPtr with_parts(ExpressionPtr whole) const;
  ExpressionPtr binary(ExpressionKind kind, Place place, ExpressionPtr left,
                       ExpressionPtr right) const;
  ExpressionPtr parse_expression(bool with_condition = true);
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  bool take_comparison(Comparison& comparison);
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters = true);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  struct TupleEnd {
    bool condition = true;       // conditional expressions are read
    bool simple = false;         // names and literals alone
    bool parenthesised = false;  // () is a tuple
    std::string_view word = {};  // ends it
  };
  ExpressionPtr parse_tuple(const TupleEnd& end);
  ExpressionPtr parse_postfix(ExpressionPtr inner);
  ExpressionPtr parse_filters(ExpressionPtr inner);
  ExpressionPtr parse_subscript(ExpressionPtr inner);
  ExpressionPtr parse_subscribed(ExpressionPtr inner, Place place);
  ExpressionPtr parse_call(ExpressionPtr callee);
  void parse_arguments(Expression& call);
  ExpressionPtr parse_filter(ExpressionPtr inner);
  ExpressionPtr parse_test(ExpressionPtr inner);

  // Statements.
  Statements parse_body(std::initializer_list<std::string_view> ends, const Token& opened);
  Statements parse_block(std::initializer_list<std::string_view> ends, const Token& opened);
  std::unique_ptr<Statement> parse_statement();
  std::unique_ptr<Statement> start(StatementKind kind) const;
  ExpressionPtr parse_target(std::string_view end_word, bool with_member);
  void check_target(const Expression& target) const;
  std::unique_ptr<Statement> parse_for();
  std::unique_ptr<Statement> parse_if();
  std::unique_ptr<Statement> parse_set();
  std::unique_ptr<Statement> parse_with();
  std::unique_ptr<Statement> parse_macro();
  std::unique_ptr<Statement> parse_call_block();
  std::unique_ptr<Statement> parse_filter_block();
  std::unique_ptr<Statement> parse_print();
  std::unique_ptr<Statement> parse_generation();
  std::unique_ptr<Statement> parse_loop_control();
  void parse_signature(Statement& macro);

  std::vector<Token> tokens_;
  const std::string& name_;
  size_t at_ = 0;
  size_t level_ = 0;
  size_t loops_ = 0;  // around the current statement, up to the next macro
  bool has_generation_ = false;
};

}  // namespace rankine
