#pragma once
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "template/nodes.h"

namespace rankine {

// What one activation holds: the template's own, a macro's, a recursive loop's.
struct FunctionNames {
  uint32_t depth = 0;  // how many functions are around it
  uint32_t slots = 0;
  uint32_t scopes = 0;
  std::map<std::tuple<uint32_t, uint32_t, std::string>, uint32_t> placed;
};

// The names of one scope.
class ScopeNames {
 public:
  struct Place {
    uint32_t function, slot;
  };

  // `apart`: shares no variable with scopes of the same depth beside it.
  ScopeNames(const ScopeNames* outer, FunctionNames& function, bool apart = false);

  void load(const std::string& name);
  void store(const std::string& name);
  uint32_t parameter(const std::string& name);
  const Place* find(const std::string& name) const;
  // After each branch of an if block was looked at in a copy of this scope.
  void join(const std::vector<ScopeNames>& branches);
  ScopePlan plan() const;
  FunctionNames& function() const { return *function_; }

 private:
  enum class Kind : uint8_t { parameter, asked, alias, missing };
  struct Load {
    Kind kind;
    std::string name;
    Place outer;
  };
  uint32_t define(const std::string& name, Load load);

  const ScopeNames* outer_;
  FunctionNames* function_;
  uint32_t level_, tag_;
  std::map<std::string, Place> names_;
  std::map<uint32_t, Load> loads_;
  std::set<std::string> stores_;
};

// Notes the names that statements use in a scope, those of inner scopes left out.
void note_names(const Statements& statements, ScopeNames& scope);
void note_names(const Expression& expression, ScopeNames& scope);
void note_target(const Expression& target, ScopeNames& scope, bool as_parameter);

// Which of `wanted` the statements and all within them read before they set it.
std::set<std::string> names_read(const Statements& statements, std::set<std::string> wanted);

}  // namespace rankine
