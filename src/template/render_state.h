#pragma once
#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "template/template.h"

// What every operation of a rendering shares: where it is, and what it may still take.
namespace rankine {

struct Place {
  uint32_t line = 1, column = 1;
};

// "'NAME': line L, column C: what", a template's errors.
std::string located(const std::string& name, Place place, std::string_view what);

class RenderState {
 public:
  RenderState(const std::string& name, const TemplateLimits& limits, std::optional<int64_t> time)
      : name_(name), limits_(limits), unix_time_(time) {}

  // Where errors are from now on.
  void at(Place place) { place_ = place; }
  Place place() const { return place_; }
  std::optional<int64_t> unix_time() const { return unix_time_; }
  const TemplateLimits& limits() const { return limits_; }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_with(fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void refuse(const std::string& said) const;

  void step() {
    if (++steps_ > limits_.steps) fail_steps();
  }
  // Before `bytes` of values are looked at.
  void look(size_t bytes) {
    steps_ += bytes / 64;
    if (steps_ > limits_.steps) fail_steps();
  }
  // Before a text of that size is made.
  void make(size_t bytes) {
    if (bytes > limits_.memory_bytes - made_) fail_memory();
    made_ += bytes;
    look(bytes);
  }
  // Before `count` places of a list are made.
  void make_items(size_t count) {
    if (count > limits_.memory_bytes / sizeof(TemplateValue)) fail_memory();
    make(count * sizeof(TemplateValue));
  }
  TemplateValue text(MarkedText text) {
    make(text.size() + sizeof(MarkedText) + text.spans().size() * sizeof(TextSpan));
    return TemplateValue::text(std::move(text));
  }
  TemplateValue text(std::string text, uint32_t origin) {
    return this->text(MarkedText(std::move(text), origin));
  }
  // With the limit of depth.
  TemplateValue list(std::vector<TemplateValue> items, ListForm form = ListForm::list,
                     uint32_t origin = 0);
  TemplateValue dict(TemplateDict dict, uint32_t origin = 0);
  TemplateValue object(std::shared_ptr<TemplateObject> object);

  // Entered by what calls itself.
  class Level {
   public:
    explicit Level(RenderState& state) : state_(state) {
      if (++state_.depth_ > state_.limits_.depth) state_.fail_depth();
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --state_.depth_; }

   private:
    RenderState& state_;
  };

 private:
  [[noreturn]] void fail_with(const std::string& what) const;
  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_memory() const;
  [[noreturn]] void fail_depth();
  TemplateValue bounded(TemplateValue value);

  const std::string& name_;
  const TemplateLimits& limits_;
  std::optional<int64_t> unix_time_;
  Place place_;
  uint64_t steps_ = 0;
  size_t made_ = 0;
  size_t depth_ = 0;
};

}  // namespace rankine
