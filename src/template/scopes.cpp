#include "template/scopes.h"

#include <algorithm>

#include "template/filters.h"
#include "template/scope_names.h"
#include "template/value_tests.h"

namespace rankine {
namespace {

constexpr size_t most_names = 1000;

ExpressionPtr copy_target(const Expression& target) {
  auto copy = std::make_unique<Expression>();
  copy->kind = target.kind;
  copy->place = target.place;
  copy->text = target.text;
  for (const ExpressionPtr& part : target.parts) copy->parts.push_back(copy_target(*part));
  return copy;
}

class Placing {
 public:
  explicit Placing(TemplateProgram& program) : program_(program) {}

  void run() {
    FunctionNames function;
    ScopeNames scope(nullptr, function);
    note_names(program_.body, scope);
    program_.scope = plan(scope);
    place(program_.body, scope, false);
    program_.slots = function.slots;
  }

 private:
  [[noreturn]] void fail(Place place, const std::string& what) const {
    throw Error(ErrorKind::data, located(program_.place, place, what));
  }

  ScopePlan plan(const ScopeNames& scope) {
    ScopePlan made = scope.plan();
    for (const ScopeLoad& load : made.loads)
      if (load.from == ScopeLoad::From::caller) program_.read.insert(load.name);
    return made;
  }
  Slot slot_of(const std::string& name, const ScopeNames& scope) const {
    const ScopeNames::Place* place = scope.find(name);
    if (place == nullptr) throw Error(ErrorKind::internal, "a name without a place: " + name);
    return {scope.function().depth - place->function, place->slot};
  }

  // `maybe`: within an if, where an unknown filter is no fault until it is asked for.
  void place(Expression& expression, const ScopeNames& scope, bool maybe) {
    if (expression.kind == ExpressionKind::name) {
      if (names_.insert(expression.text).second && names_.size() > most_names)
        fail(expression.place, fmt::format("more than {} names", most_names));
      expression.slot = slot_of(expression.text, scope);
    }
    if (!maybe && expression.kind == ExpressionKind::filter && !is_filter(expression.text))
      fail(expression.place, fmt::format("there is no filter '{}'", expression.text));
    if (!maybe && expression.kind == ExpressionKind::test && !is_value_test(expression.text))
      fail(expression.place, fmt::format("there is no test '{}'", expression.text));
    for (const ExpressionPtr& part : expression.parts)
      if (part != nullptr)
        place(*part, scope, maybe || expression.kind == ExpressionKind::condition);
  }
  void place_all(std::vector<ExpressionPtr>& expressions, const ScopeNames& scope, bool maybe) {
    for (const ExpressionPtr& expression : expressions)
      if (expression != nullptr) place(*expression, scope, maybe);
  }
  void place(Statements& statements, const ScopeNames& scope, bool maybe) {
    for (const auto& statement : statements) place(*statement, scope, maybe);
  }

  void place(Statement& statement, const ScopeNames& scope, bool maybe);
  void place_loop(Statement& loop, const ScopeNames& scope, bool maybe);
  void place_function(Statement& macro, const ScopeNames& scope);
  void place_inner(Statement& block, const ScopeNames& scope, bool maybe);
  void place_specials(Statement& block, ScopeNames& scope);

  TemplateProgram& program_;
  std::set<std::string> names_;
};

void Placing::place(Statement& statement, const ScopeNames& scope, bool maybe) {
  switch (statement.kind) {
    case StatementKind::branch:
      place_all(statement.expressions, scope, true);
      for (Statements& body : statement.bodies) place(body, scope, true);
      return;
    case StatementKind::loop:
      return place_loop(statement, scope, maybe);
    case StatementKind::macro:
      statement.own = slot_of(statement.name, scope);
      return place_function(statement, scope);
    case StatementKind::call_block:
      place(*statement.expressions[0], scope, maybe);
      return place_function(statement, scope);
    case StatementKind::set_block:
    case StatementKind::filter_block:
    case StatementKind::with:
    case StatementKind::generation:
      return place_inner(statement, scope, maybe);
    default:
      place_all(statement.expressions, scope, maybe);
      place_all(statement.targets, scope, maybe);
  }
}

void Placing::place_loop(Statement& loop, const ScopeNames& scope, bool maybe) {
  FunctionNames own;
  own.depth = scope.function().depth + 1;
  FunctionNames& function = loop.recursive ? own : scope.function();
  loop.names_loop = loop.recursive || !names_read(loop.bodies[0], {"loop"}).empty();
  place(*loop.expressions[0], scope, maybe);

  ScopeNames body(&scope, function);
  if (loop.names_loop) loop.loop_slot = body.parameter("loop");
  note_target(*loop.targets[0], body, true);
  note_names(loop.bodies[0], body);
  place(*loop.targets[0], body, maybe);
  place(loop.bodies[0], body, false);

  ScopeNames otherwise(&scope, function);
  note_names(loop.bodies[1], otherwise);
  place(loop.bodies[1], otherwise, false);
  loop.scopes = {plan(body), plan(otherwise)};

  if (loop.expressions[1] != nullptr) {
    ScopeNames filter(&scope, function, true);
    note_target(*loop.targets[0], filter, true);
    note_names(*loop.expressions[1], filter);
    place(*loop.expressions[1], filter, false);
    // The same target once more, for the filter's own variables.
    loop.targets.push_back(copy_target(*loop.targets[0]));
    place(*loop.targets[1], filter, false);
    loop.scopes.push_back(plan(filter));
  }
  loop.slots = own.slots;
}

void Placing::place_specials(Statement& block, ScopeNames& scope) {
  static const std::string special_names[Statement::special_count] = {"caller", "kwargs",
                                                                      "varargs"};
  const std::set<std::string> read =
      names_read(block.bodies[0], {special_names, special_names + Statement::special_count});
  for (size_t i = 0; i < Statement::special_count; ++i) {
    const bool named = std::find(block.parameters.begin(), block.parameters.end(),
                                 special_names[i]) != block.parameters.end();
    block.takes[i] = read.contains(special_names[i]) && !named;
    if (block.takes[i]) block.special_slots[i] = scope.parameter(special_names[i]);
  }
}

void Placing::place_function(Statement& macro, const ScopeNames& scope) {
  FunctionNames function;
  function.depth = scope.function().depth + 1;
  ScopeNames body(&scope, function);
  for (const std::string& parameter : macro.parameters)
    macro.parameter_slots.push_back(body.parameter(parameter));
  const size_t first = macro.kind == StatementKind::call_block ? 1 : 0;  // of the defaults
  for (size_t i = first; i < macro.expressions.size(); ++i) note_names(*macro.expressions[i], body);
  note_names(macro.bodies[0], body);
  place_specials(macro, body);
  for (size_t i = first; i < macro.expressions.size(); ++i)
    place(*macro.expressions[i], body, false);
  place(macro.bodies[0], body, false);
  macro.scopes = {plan(body)};
  macro.slots = function.slots;
}

void Placing::place_inner(Statement& block, const ScopeNames& scope, bool maybe) {
  ScopeNames inner(&scope, scope.function(), block.kind == StatementKind::generation);
  if (block.kind == StatementKind::with)
    for (const ExpressionPtr& target : block.targets) note_target(*target, inner, true);
  note_names(block.bodies[0], inner);
  if (block.kind == StatementKind::generation) place_specials(block, inner);
  if (block.kind == StatementKind::with) {
    place_all(block.expressions, scope, maybe);
    place_all(block.targets, inner, maybe);
  } else {
    if (block.kind == StatementKind::set_block) place_all(block.targets, scope, maybe);
    for (const ExpressionPtr& filter : block.expressions)
      if (filter != nullptr) note_names(*filter, inner);
    place_all(block.expressions, inner, maybe);
  }
  place(block.bodies[0], inner, false);
  block.scopes = {plan(inner)};
}

}  // namespace

void place_variables(TemplateProgram& program) {
  Placing(program).run();
}

}  // namespace rankine
