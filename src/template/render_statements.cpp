#include "template/operators.h"
#include "template/renderer.h"
#include "template/value_text.h"

namespace rankine {

Renderer::Flow Renderer::execute(const Statements& statements, MarkedText& out) {
  const RenderState::Level level(state_);
  for (const auto& statement : statements) {
    const Flow flow = execute(*statement, out);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Renderer::Flow Renderer::execute(const Statement& statement, MarkedText& out) {
  state_.at(statement.place);
  state_.step();
  switch (statement.kind) {
    case StatementKind::text:
      emit(statement.text, out);
      return Flow::on;
    case StatementKind::print:
      print(statement, out);
      return Flow::on;
    case StatementKind::branch:
      return branch(statement, out);
    case StatementKind::loop:
      return loop(statement, out);
    case StatementKind::set:
      assign(*statement.targets[0], evaluate(*statement.expressions[0]));
      return Flow::on;
    case StatementKind::set_block:
      return set_block(statement, out);
    case StatementKind::macro:
      define_macro(statement);
      return Flow::on;
    case StatementKind::call_block:
      call_block(statement, out);
      return Flow::on;
    case StatementKind::filter_block:
      return filter_block(statement, out);
    case StatementKind::with:
      return with(statement, out);
    case StatementKind::generation:
      generation(statement, out);
      return Flow::on;
    case StatementKind::leave_loop:
      return Flow::leave_loop;
    case StatementKind::next_round:
      return Flow::next_round;
  }
  return Flow::on;
}

void Renderer::print(const Statement& print, MarkedText& out) {
  for (const ExpressionPtr& expression : print.expressions) {
    const TemplateValue value = evaluate(*expression);
    if (value.is(ValueKind::text))
      emit(value.as_text(), out);
    else
      emit(text_of(state_, value), out);
  }
}

Renderer::Flow Renderer::branch(const Statement& branch, MarkedText& out) {
  for (size_t i = 0; i < branch.expressions.size(); ++i)
    if (truth(evaluate(*branch.expressions[i]))) return execute(branch.bodies[i], out);
  return execute(branch.bodies.back(), out);
}

std::shared_ptr<LoopObject> Renderer::start_loop(const Statement& loop, const TemplateValue& over) {
  state_.at(loop.expressions[0]->place);
  auto object = std::make_shared<LoopObject>(state_, over);
  state_.make(sizeof(LoopObject));
  if (loop.expressions[1] != nullptr)
    object->passes = [this, &loop, activation = now_](const TemplateValue& item) {
      std::shared_ptr<Activation> before = std::exchange(now_, activation);
      enter(loop.scopes[2]);
      assign(*loop.targets[1], item);
      const bool passes = truth(evaluate(*loop.expressions[1]));
      now_ = std::move(before);
      return passes;
    };
  return object;
}

Renderer::Flow Renderer::loop(const Statement& loop, MarkedText& out) {
  const TemplateValue over = evaluate(*loop.expressions[0]);
  if (!loop.recursive) return loop_over(loop, start_loop(loop, over), out);
  recursive_loop(loop, over, 0, out);
  return Flow::on;
}

void Renderer::recursive_loop(const Statement& loop, const TemplateValue& over, int64_t depth,
                              MarkedText& out) {
  const std::shared_ptr<Activation> outer = now_;
  now_ = activation(loop.slots, outer);
  const std::shared_ptr<LoopObject> object = start_loop(loop, over);
  object->definition = &loop;
  object->outer = outer;
  object->depth0 = depth;
  loop_over(loop, object, out);
  now_ = outer;
}

Renderer::Flow Renderer::loop_over(const Statement& loop, const std::shared_ptr<LoopObject>& object,
                                   MarkedText& out) {
  const LoopCloser closer(*object);
  bool ended_a_round = false;  // as Jinja decides whether the else block is due
  while (object->advance()) {
    state_.step();
    enter(loop.scopes[0]);
    assign(*loop.targets[0], object->current());
    if (loop.names_loop) now_->slots[loop.loop_slot] = TemplateValue::object(object);
    const Flow flow = execute(loop.bodies[0], out);
    if (flow == Flow::leave_loop) break;
    if (flow == Flow::on) ended_a_round = true;
  }
  leave(loop.scopes[0]);
  if (ended_a_round || loop.bodies[1].empty()) return Flow::on;
  enter(loop.scopes[1]);
  const Flow flow = execute(loop.bodies[1], out);
  leave(loop.scopes[1]);
  return flow;
}

Renderer::Flow Renderer::set_block(const Statement& block, MarkedText& out) {
  (void)out;  // what the block writes becomes the value
  MarkedText written;
  enter(block.scopes[0]);
  const Flow flow = execute(block.bodies[0], written);
  if (flow == Flow::on) {
    TemplateValue value = state_.text(std::move(written));
    if (block.expressions[0] != nullptr) {
      const TemplateValue* before = std::exchange(block_input_, &value);
      value = TemplateValue(evaluate(*block.expressions[0]));
      block_input_ = before;
    }
    assign(*block.targets[0], value);
  }
  leave(block.scopes[0]);
  return flow;
}

Renderer::Flow Renderer::filter_block(const Statement& block, MarkedText& out) {
  MarkedText written;
  enter(block.scopes[0]);
  const Flow flow = execute(block.bodies[0], written);
  if (flow == Flow::on) {
    const TemplateValue value = state_.text(std::move(written));
    const TemplateValue* before = std::exchange(block_input_, &value);
    const TemplateValue filtered = evaluate(*block.expressions[0]);
    block_input_ = before;
    emit(text_of(state_, filtered), out);
  }
  leave(block.scopes[0]);
  return flow;
}

Renderer::Flow Renderer::with(const Statement& with, MarkedText& out) {
  enter(with.scopes[0]);
  for (size_t i = 0; i < with.targets.size(); ++i)
    assign(*with.targets[i], evaluate(*with.expressions[i]));
  const Flow flow = execute(with.bodies[0], out);
  leave(with.scopes[0]);
  return flow;
}

void Renderer::generation(const Statement& block, MarkedText& out) {
  MarkedText written;
  enter(block.scopes[0]);
  Arguments none;
  bind_specials(block, none);
  execute(block.bodies[0], written);
  leave(block.scopes[0]);
  written.mark_generated();
  emit(written, out);
}

void Renderer::call_block(const Statement& block, MarkedText& out) {
  keep(now_);
  auto object = std::make_shared<MacroObject>();
  object->definition = &block;
  object->closure = now_;
  object->name = " anonymous";
  const TemplateValue caller = state_.object(std::move(object));
  emit(text_of(state_, evaluate_call(*block.expressions[0], &caller)), out);
}

}  // namespace rankine
