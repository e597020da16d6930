#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "template/template_value.h"

// What lives only while a template is rendered.
namespace rankine {

struct Activation;  // the variables of one call, see nodes.h and renderer.h
struct Statement;
class RenderState;

enum class ObjectKind : uint8_t { space, macro, method, function, loop, generator, cycler, joiner };

struct TemplateObject {
  explicit TemplateObject(ObjectKind object_kind) : kind(object_kind) {}
  TemplateObject(const TemplateObject&) = delete;
  TemplateObject& operator=(const TemplateObject&) = delete;
  virtual ~TemplateObject() = default;
  // Whether it has such an attribute, and which. `state` bears what finding it out takes.
  virtual bool attribute(RenderState& state, std::string_view name, TemplateValue& value);
  const ObjectKind kind;
  size_t depth = 0;  // of the values in it that cannot change, as TemplateValue::depth counts
};

// namespace(): the one thing that a template can change.
struct NamespaceObject : TemplateObject {
  NamespaceObject() : TemplateObject(ObjectKind::space) {}
  bool attribute(RenderState& state, std::string_view name, TemplateValue& value) override;
  TemplateDict attributes;
};

// A macro, or the block of a call, with the variables it was defined among.
struct MacroObject : TemplateObject {
  MacroObject() : TemplateObject(ObjectKind::macro) {}
  const Statement* definition = nullptr;
  std::shared_ptr<Activation> closure;
  std::string name;  // as it is printed
};

// `receiver`.`name`, not yet called; of loops and the like as well.
struct MethodObject : TemplateObject {
  MethodObject(TemplateValue of, std::string called)
      : TemplateObject(ObjectKind::method), receiver(std::move(of)), name(std::move(called)) {
    depth = receiver.depth() + 1;
  }
  TemplateValue receiver;
  std::string name;
};

// range, namespace, ...: a global function.
struct FunctionObject : TemplateObject {
  explicit FunctionObject(std::string called)
      : TemplateObject(ObjectKind::function), name(std::move(called)) {}
  std::string name;
};

// What map, select and the like give: true, without length, made when somebody looks, and used up
// by the first who does.
struct GeneratorObject : TemplateObject {
  using Make = std::function<std::vector<TemplateValue>(RenderState&)>;
  // `from` is what the items are made of.
  GeneratorObject(Make items, const TemplateValue& from)
      : TemplateObject(ObjectKind::generator), make_(std::move(items)) {
    depth = from.depth() + 1;
  }
  bool take(RenderState& state, TemplateValue& item);  // false behind the last
  std::vector<TemplateValue> rest(RenderState& state);

 private:
  void fill(RenderState& state);

  Make make_;
  std::vector<TemplateValue> items_;
  size_t next_ = 0;
};

struct CyclerObject : TemplateObject {
  explicit CyclerObject(std::vector<TemplateValue> of)
      : TemplateObject(ObjectKind::cycler), items(std::move(of)) {
    for (const TemplateValue& item : items) depth = std::max(depth, item.depth() + 1);
  }
  bool attribute(RenderState& state, std::string_view name, TemplateValue& value) override;
  std::vector<TemplateValue> items;
  size_t next = 0;
};

struct JoinerObject : TemplateObject {
  explicit JoinerObject(TemplateValue by)
      : TemplateObject(ObjectKind::joiner), separator(std::move(by)) {
    depth = separator.depth() + 1;
  }
  TemplateValue separator;
  bool used = false;
};

}  // namespace rankine
