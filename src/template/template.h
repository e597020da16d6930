#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "template/marked_text.h"
#include "template/template_value.h"

// The Jinja of chat templates, set up as Hugging Face's transformers does: first newline behind a
// block and blanks before it trimmed, break and continue, generation blocks, tojson,
// raise_exception, strftime_now. A template reaches no file and no code, and its work is bounded.
namespace rankine {

// What one rendering may take. Beyond it: Error{data} that names the limit.
struct TemplateLimits {
  uint64_t steps = 10'000'000;      // evaluations, iterations, and one for every 64 bytes looked at
  size_t output_bytes = 128 << 20;  // of the rendered text
  size_t depth = 600;               // of calls, expressions and blocks within each other, of values
  size_t memory_bytes = 512 << 20;  // of all texts and lists made, whether still in use or not
};

struct TemplateVariables {
  std::map<std::string, TemplateValue, std::less<>> values;
  // What strftime_now() tells, as seconds since 1970, always in UTC; a template that asks for the
  // time is refused where there is none.
  std::optional<int64_t> unix_time;
};

// The template itself said no, by raise_exception; what it said is in the message behind the place.
class TemplateRefusal : public Error {
 public:
  TemplateRefusal(const std::string& message, std::string said)
      : Error(ErrorKind::data, message), said_(std::move(said)) {}
  const std::string& said() const { return said_; }

 private:
  std::string said_;
};

struct TemplateProgram;

// A parsed template. Copies share it; rendering does not change it, so threads may render at once.
class Template {
 public:
  // `place` names the template in messages. Error{data} "'PLACE': line L, column C: what".
  static Template parse(std::string_view text, const std::string& place);
  // Error{data} with the place of the expression; TemplateRefusal for raise_exception.
  MarkedText render(const TemplateVariables& variables, const TemplateLimits& limits = {}) const;
  bool has_generation_blocks() const;
  // Whether the template asks for this variable of the caller, or global function, anywhere.
  bool reads(std::string_view name) const;

 private:
  std::shared_ptr<const TemplateProgram> program_;
};

}  // namespace rankine
