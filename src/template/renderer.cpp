#include "template/renderer.h"

#include "template/operators.h"
#include "template/value_text.h"

namespace rankine {
namespace {

constexpr std::string_view global_functions[] = {
    "cycler", "dict", "joiner", "namespace", "range", "raise_exception", "strftime_now"};

}  // namespace

Renderer::Renderer(const TemplateProgram& program, const TemplateVariables& variables,
                   const TemplateLimits& limits)
    : program_(program),
      variables_(variables),
      state_(program.place, limits, variables.unix_time),
      now_(activation(program.slots, nullptr)) {}

Renderer::~Renderer() {
  now_.reset();
  for (const auto& space : namespaces_) space->attributes = TemplateDict();
  for (const auto& activation : kept_) activation->slots.clear();
}

MarkedText Renderer::run() {
  MarkedText out;
  enter(program_.scope);
  execute(program_.body, out);
  return out;
}

std::shared_ptr<Activation> Renderer::activation(uint32_t slots,
                                                 std::shared_ptr<Activation> outer) {
  state_.make_items(slots + 2);
  auto made = std::make_shared<Activation>();
  made->slots.resize(slots);
  made->outer = std::move(outer);
  return made;
}

void Renderer::keep(const std::shared_ptr<Activation>& activation) {
  if (activation->kept) return;
  activation->kept = true;
  state_.make_items(1);
  kept_.push_back(activation);
}

TemplateValue& Renderer::slot(const Slot& slot) {
  Activation* activation = now_.get();
  for (uint32_t i = 0; i < slot.calls; ++i) activation = activation->outer.get();
  return activation->slots[slot.slot];
}

TemplateValue Renderer::asked(const std::string& name) {
  const auto found = variables_.values.find(name);
  if (found != variables_.values.end()) return found->second;
  for (const std::string_view function : global_functions)
    if (name == function) return TemplateValue::object(std::make_shared<FunctionObject>(name));
  return {};
}

void Renderer::enter(const ScopePlan& plan) {
  for (const ScopeLoad& load : plan.loads) {
    TemplateValue& place = now_->slots[load.slot];
    switch (load.from) {
      case ScopeLoad::From::nowhere:
        place = TemplateValue();
        break;
      case ScopeLoad::From::caller:
        place = asked(load.name);
        break;
      case ScopeLoad::From::outer:
        place = TemplateValue(slot(load.outer));
        break;
    }
  }
}

void Renderer::leave(const ScopePlan& plan) {
  for (const uint32_t cleared : plan.cleared) now_->slots[cleared] = TemplateValue();
}

void Renderer::emit(const MarkedText& text, MarkedText& out) {
  if (out.size() + text.size() > state_.limits().output_bytes)
    state_.fail("more than {} bytes are written", state_.limits().output_bytes);
  state_.make(text.size() + text.spans().size() * sizeof(TextSpan));
  out.append(text);
}

void Renderer::assign(const Expression& target, const TemplateValue& value) {
  state_.at(target.place);
  if (target.kind == ExpressionKind::name) {
    slot(target.slot) = value;
    return;
  }
  if (target.kind == ExpressionKind::member) {
    const TemplateValue space = slot(target.parts[0]->slot);
    if (!space.is(ValueKind::object) || space.as_object().kind != ObjectKind::space)
      state_.fail("'{}' is no namespace, whose attributes alone can be set", target.parts[0]->text);
    state_.make_items(2);
    static_cast<NamespaceObject&>(space.as_object()).attributes.set(target.text, value);
    return;
  }
  need_defined(state_, value);
  const std::vector<TemplateValue> items = items_of(state_, value);
  if (items.size() != target.parts.size())
    state_.fail("{} values for {} names", items.size(), target.parts.size());
  for (size_t i = 0; i < items.size(); ++i) assign(*target.parts[i], items[i]);
}

void Renderer::define_macro(const Statement& macro) {
  keep(now_);
  auto object = std::make_shared<MacroObject>();
  object->definition = &macro;
  object->closure = now_;
  object->name = fmt::format(" '{}'", macro.name);
  slot(macro.own) = state_.object(std::move(object));
}

}  // namespace rankine
