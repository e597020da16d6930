#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "template/nodes.h"
#include "template/template_object.h"

namespace rankine {

// `loop`: a for block under way. It goes over items one by one, so that the block's condition is
// asked when an item's turn comes.
struct LoopObject : TemplateObject {
  LoopObject(RenderState& state, const TemplateValue& over);
  bool attribute(RenderState& state, std::string_view name, TemplateValue& value) override;
  // The next item becomes the current one; false at the end.
  bool advance();
  // Whether there is an item behind the current one; it is then ahead.front().
  bool has_next();
  TemplateValue cycle(RenderState& state, const std::vector<TemplateValue>& values) const;
  bool changed(RenderState& state, const std::vector<TemplateValue>& values);
  // Lets go of everything; later questions find no items.
  void close();

  std::function<bool(const TemplateValue&)> passes;  // the condition, if there is one
  const Statement* definition = nullptr;             // where the loop is recursive
  std::shared_ptr<Activation> outer;                 // likewise
  int64_t depth0 = 0, index0 = -1;

 private:
  bool pull(TemplateValue& item);
  int64_t length();

  RenderState* state_;
  TemplateValue source_;
  std::vector<TemplateValue> own_;
  const std::vector<TemplateValue>* items_ = &own_;
  size_t next_ = 0;
  std::deque<TemplateValue> ahead_;
  TemplateValue before_, current_;
  std::optional<std::vector<TemplateValue>> last_changed_;
  std::optional<int64_t> length_;

 public:
  const TemplateValue& current() const { return current_; }
};

// The loop is closed when this goes out of scope.
struct LoopCloser {
  explicit LoopCloser(LoopObject& loop) : loop_(loop) {}
  LoopCloser(const LoopCloser&) = delete;
  LoopCloser& operator=(const LoopCloser&) = delete;
  ~LoopCloser() { loop_.close(); }
  LoopObject& loop_;
};

}  // namespace rankine
