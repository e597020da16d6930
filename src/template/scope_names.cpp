#include "template/scope_names.h"

namespace rankine {

ScopeNames::ScopeNames(const ScopeNames* outer, FunctionNames& function, bool apart)
    : outer_(outer),
      function_(&function),
      level_(outer == nullptr ? 0 : outer->level_ + 1),
      tag_(apart                                               ? ++function.scopes
           : outer != nullptr && outer->function_ == &function ? outer->tag_
                                                               : 0) {}

uint32_t ScopeNames::define(const std::string& name, Load load) {
  const auto [placed, is_new] =
      function_->placed.try_emplace({tag_, level_, name}, function_->slots);
  if (is_new) ++function_->slots;
  names_[name] = {function_->depth, placed->second};
  loads_[placed->second] = std::move(load);
  return placed->second;
}

const ScopeNames::Place* ScopeNames::find(const std::string& name) const {
  for (const ScopeNames* scope = this; scope != nullptr; scope = scope->outer_) {
    const auto found = scope->names_.find(name);
    if (found != scope->names_.end()) return &found->second;
  }
  return nullptr;
}

void ScopeNames::load(const std::string& name) {
  if (find(name) == nullptr) define(name, {Kind::asked, name, {}});
}

void ScopeNames::store(const std::string& name) {
  stores_.insert(name);
  if (names_.contains(name)) return;
  const Place* around = outer_ == nullptr ? nullptr : outer_->find(name);
  if (around != nullptr)
    define(name, {Kind::alias, name, *around});
  else
    define(name, {Kind::missing, name, {}});
}

uint32_t ScopeNames::parameter(const std::string& name) {
  stores_.insert(name);
  return define(name, {Kind::parameter, name, {}});
}

void ScopeNames::join(const std::vector<ScopeNames>& branches) {
  std::map<std::string, size_t> setting;  // how many branches set a name that was not set before
  for (const ScopeNames& branch : branches)
    for (const std::string& name : branch.stores_)
      if (!stores_.contains(name)) ++setting[name];
  for (const ScopeNames& branch : branches) {
    for (const auto& [name, place] : branch.names_) names_[name] = place;
    for (const auto& [slot, load] : branch.loads_) loads_[slot] = load;
    stores_.insert(branch.stores_.begin(), branch.stores_.end());
  }
  for (const auto& [name, count] : setting) {
    if (count == branches.size()) continue;
    const Place* around = outer_ == nullptr ? nullptr : outer_->find(name);
    const uint32_t slot = find(name)->slot;
    loads_[slot] =
        around != nullptr ? Load{Kind::alias, name, *around} : Load{Kind::asked, name, {}};
  }
}

ScopePlan ScopeNames::plan() const {
  ScopePlan plan;
  for (const auto& [slot, load] : loads_) {
    plan.cleared.push_back(slot);
    if (load.kind == Kind::parameter) continue;
    ScopeLoad entry;
    entry.slot = slot;
    if (load.kind == Kind::asked) {
      entry.from = ScopeLoad::From::caller;
      entry.name = load.name;
    } else if (load.kind == Kind::alias) {
      entry.from = ScopeLoad::From::outer;
      entry.outer = {function_->depth - load.outer.function, load.outer.slot};
    }
    plan.loads.push_back(std::move(entry));
  }
  return plan;
}

void note_names(const Expression& expression, ScopeNames& scope) {
  if (expression.kind == ExpressionKind::name) scope.load(expression.text);
  for (const ExpressionPtr& part : expression.parts)
    if (part != nullptr) note_names(*part, scope);
}

void note_target(const Expression& target, ScopeNames& scope, bool as_parameter) {
  if (target.kind == ExpressionKind::member) {
    scope.load(target.parts[0]->text);
  } else if (target.kind == ExpressionKind::name) {
    if (as_parameter)
      scope.parameter(target.text);
    else
      scope.store(target.text);
  } else {
    for (const ExpressionPtr& part : target.parts) note_target(*part, scope, as_parameter);
  }
}

namespace {

void note_all(const std::vector<ExpressionPtr>& expressions, ScopeNames& scope) {
  for (const ExpressionPtr& expression : expressions)
    if (expression != nullptr) note_names(*expression, scope);
}

void note_branch(const Statement& branch, ScopeNames& scope) {
  note_names(*branch.expressions[0], scope);
  ScopeNames first = scope, middle = scope, last = scope;
  note_names(branch.bodies[0], first);
  for (size_t i = 1; i < branch.expressions.size(); ++i) {
    note_names(*branch.expressions[i], middle);
    ScopeNames body = middle;
    note_names(branch.bodies[i], body);
    middle.join({body, middle, middle});
  }
  note_names(branch.bodies.back(), last);
  scope.join({std::move(first), std::move(middle), std::move(last)});
}

void note_statement(const Statement& statement, ScopeNames& scope) {
  switch (statement.kind) {
    case StatementKind::branch:
      return note_branch(statement, scope);
    case StatementKind::macro:
      return scope.store(statement.name);
    case StatementKind::loop:
    case StatementKind::call_block:
      return note_names(*statement.expressions[0], scope);
    case StatementKind::set:
    case StatementKind::set_block:
      note_all(statement.expressions, scope);
      return note_target(*statement.targets[0], scope, false);
    default:
      return note_all(statement.expressions, scope);
  }
}

class NameReader {
 public:
  explicit NameReader(std::set<std::string> wanted) : wanted_(std::move(wanted)) {}

  void read(const Expression& expression) {
    if (expression.kind == ExpressionKind::name && wanted_.contains(expression.text))
      found_.insert(expression.text);
    for (const ExpressionPtr& part : expression.parts)
      if (part != nullptr) read(*part);
  }
  void read(const Statements& statements) {
    for (const auto& statement : statements) read(*statement);
  }
  std::set<std::string> found() { return std::move(found_); }

 private:
  void set(const Expression& target) {
    if (target.kind == ExpressionKind::name) wanted_.erase(target.text);
    if (target.kind == ExpressionKind::tuple)
      for (const ExpressionPtr& part : target.parts) set(*part);
  }
  void read(const Statement& statement) {
    for (const ExpressionPtr& target : statement.targets) set(*target);
    for (const std::string& parameter : statement.parameters) wanted_.erase(parameter);
    for (const ExpressionPtr& expression : statement.expressions)
      if (expression != nullptr) read(*expression);
    for (const Statements& body : statement.bodies) read(body);
  }

  std::set<std::string> wanted_, found_;
};

}  // namespace

void note_names(const Statements& statements, ScopeNames& scope) {
  for (const auto& statement : statements) note_statement(*statement, scope);
}

std::set<std::string> names_read(const Statements& statements, std::set<std::string> wanted) {
  NameReader reader(std::move(wanted));
  reader.read(statements);
  return reader.found();
}

}  // namespace rankine
