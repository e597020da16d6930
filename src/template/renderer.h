#pragma once
#include <memory>
#include <vector>

#include "template/arguments.h"
#include "template/loop_object.h"
#include "template/nodes.h"
#include "template/template_object.h"

namespace rankine {

// The variables of one call: of the template, a macro, a recursive loop.
struct Activation {
  std::vector<TemplateValue> slots;
  std::shared_ptr<Activation> outer;  // the one that the macro was defined among
  bool kept = false;                  // a macro refers to it
};

// One rendering of a program.
class Renderer {
 public:
  Renderer(const TemplateProgram& program, const TemplateVariables& variables,
           const TemplateLimits& limits);
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;
  ~Renderer();

  MarkedText run();

 private:
  enum class Flow : uint8_t { on, leave_loop, next_round };

  // Statements.
  Flow execute(const Statements& statements, MarkedText& out);
  Flow execute(const Statement& statement, MarkedText& out);
  Flow branch(const Statement& branch, MarkedText& out);
  Flow loop(const Statement& loop, MarkedText& out);
  Flow loop_over(const Statement& loop, const std::shared_ptr<LoopObject>& state, MarkedText& out);
  void recursive_loop(const Statement& loop, const TemplateValue& over, int64_t depth,
                      MarkedText& out);
  Flow set_block(const Statement& block, MarkedText& out);
  Flow filter_block(const Statement& block, MarkedText& out);
  Flow with(const Statement& with, MarkedText& out);
  void print(const Statement& print, MarkedText& out);
  void define_macro(const Statement& macro);
  void call_block(const Statement& block, MarkedText& out);
  void generation(const Statement& block, MarkedText& out);
  void emit(const MarkedText& text, MarkedText& out);
  void assign(const Expression& target, const TemplateValue& value);
  std::shared_ptr<LoopObject> start_loop(const Statement& loop, const TemplateValue& over);

  // Scopes and variables.
  void enter(const ScopePlan& plan);
  void leave(const ScopePlan& plan);
  TemplateValue& slot(const Slot& slot);
  TemplateValue asked(const std::string& name);
  std::shared_ptr<Activation> activation(uint32_t slots, std::shared_ptr<Activation> outer);
  void keep(const std::shared_ptr<Activation>& activation);

  // Expressions.
  TemplateValue evaluate(const Expression& expression);
  TemplateValue evaluate_inner(const Expression& expression);
  TemplateValue evaluate_literal(const Expression& literal);
  TemplateValue evaluate_operator(const Expression& expression);
  TemplateValue evaluate_concatenation(const Expression& expression);
  TemplateValue evaluate_comparison(const Expression& expression);
  TemplateValue evaluate_condition(const Expression& expression);
  TemplateValue evaluate_access(const Expression& expression);
  TemplateValue evaluate_slice(const Expression& expression);
  TemplateValue evaluate_filter(const Expression& filter);
  TemplateValue evaluate_test(const Expression& test);
  TemplateValue evaluate_call(const Expression& call, const TemplateValue* caller = nullptr);
  Arguments arguments_of(const Expression& call, const TemplateValue* caller = nullptr);

  // Calls.
  TemplateValue call(const TemplateValue& callee, Arguments& arguments);
  TemplateValue call_macro(const MacroObject& macro, Arguments& arguments);
  void bind_parameters(const Statement& macro, Arguments& arguments);
  void bind_specials(const Statement& macro, Arguments& arguments);
  TemplateValue call_object_method(const MethodObject& method, const Arguments& arguments);
  TemplateValue call_function(const std::string& name, const Arguments& arguments);
  TemplateValue make_range(const Arguments& arguments);
  TemplateValue make_namespace(const Arguments& arguments);
  TemplateDict make_dict(const Arguments& arguments);
  TemplateValue time_text(const Arguments& arguments);

  const TemplateProgram& program_;
  const TemplateVariables& variables_;
  RenderState state_;
  std::shared_ptr<Activation> now_;
  const TemplateValue* block_input_ = nullptr;  // of the filter of a block
  // What may refer to itself, so that it can be taken apart at the end.
  std::vector<std::shared_ptr<Activation>> kept_;
  std::vector<std::shared_ptr<NamespaceObject>> namespaces_;
};

}  // namespace rankine
