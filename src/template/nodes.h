#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "template/render_state.h"
#include "template/template_value.h"

// A parsed template.
namespace rankine {

enum class ExpressionKind : uint8_t {
  constant,
  name,    // a variable
  member,  // of a namespace, only as a target: `name`.`text`
  tuple,
  list,
  dict,       // parts: key, value, key, value, ...
  attribute,  // parts: object; `text` is the attribute
  item,       // parts: object, key
  slice,      // parts: object, start, stop, step, each but the first may be null
  call,       // parts: callee, arguments
  filter,     // parts: input (null: of a block), arguments; `text` is the filter
  test,       // parts: input, arguments; `text` is the test
  negate,
  plus,
  logical_not,
  logical_and,
  logical_or,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  concatenate,  // parts: two or more
  compare,      // parts: the operands; `comparisons` between them
  condition     // parts: condition, then, otherwise (may be null)
};

enum class Comparison : uint8_t {
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in
};

// A variable's place: `calls` activations out, number `slot` there.
struct Slot {
  uint32_t calls = 0;
  uint32_t slot = 0;
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  Place place;
  std::string text;
  std::vector<ExpressionPtr> parts;
  // Of a call, filter or test: names of the last arguments, then whether *x and **x follow them.
  std::vector<std::string> keywords;
  bool spreads_list = false, spreads_dict = false;
  std::vector<Comparison> comparisons;
  TemplateValue constant;  // of a name: what it is where it is missing
  Slot slot;
  uint32_t height = 1;  // of the tree under it

  size_t positional() const {  // how many parts come before those with keywords
    return parts.size() - keywords.size() - (spreads_list ? 1 : 0) - (spreads_dict ? 1 : 0);
  }
};

// What a scope does with its variables when it is entered.
struct ScopeLoad {
  enum class From : uint8_t { nowhere, caller, outer } from = From::nowhere;
  uint32_t slot = 0;
  std::string name;  // asked of the caller's variables
  Slot outer;
};
struct ScopePlan {
  std::vector<ScopeLoad> loads;
  std::vector<uint32_t> cleared;  // slots that are missing once it is left
};

enum class StatementKind : uint8_t {
  text,
  print,         // expressions
  branch,        // expressions: conditions; bodies: one for each, then the last
  loop,          // expressions: what it goes over, filter (may be null); bodies: body, otherwise
  set,           // expressions: value
  set_block,     // expressions: filter (may be null); bodies: one
  macro,         // expressions: defaults of the last parameters
  call_block,    // expressions: call, defaults
  filter_block,  // expressions: filter
  with,          // expressions: values; targets: one for each
  generation,
  leave_loop,
  next_round
};

struct Statement;
using Statements = std::vector<std::unique_ptr<Statement>>;

struct Statement {
  StatementKind kind = StatementKind::text;
  Place place;
  MarkedText text;
  std::string name;
  std::vector<ExpressionPtr> expressions;
  std::vector<ExpressionPtr> targets;
  std::vector<Statements> bodies;
  std::vector<ScopePlan>
      scopes;  // one for each body that is a scope of its own; a loop's filter last

  // Loops.
  bool recursive = false;
  bool names_loop = false;  // its body asks for `loop`
  uint32_t loop_slot = 0;
  // Macros and call blocks, recursive loops: what a call of them needs.
  uint32_t slots = 0;
  std::vector<std::string> parameters;
  std::vector<uint32_t> parameter_slots;
  enum Special : uint8_t { caller, keyword_arguments, further_arguments, special_count };
  bool takes[special_count] = {false, false, false};
  uint32_t special_slots[special_count] = {0, 0, 0};
  Slot own;  // of a macro: where it is stored
};

struct TemplateProgram {
  std::string place;
  Statements body;
  ScopePlan scope;
  uint32_t slots = 0;
  bool has_generation = false;
  std::set<std::string, std::less<>> read;  // names asked of the caller's variables
};

}  // namespace rankine
