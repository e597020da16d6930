#include "template/template.h"

#include <utf8proc.h>

#include "template/nodes.h"
#include "template/parser.h"
#include "template/renderer.h"

namespace rankine {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t bytes =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                         static_cast<utf8proc_ssize_t>(text.size()), &code);
    if (bytes <= 0) return false;
    text.remove_prefix(static_cast<size_t>(bytes));
  }
  return true;
}

}  // namespace

Template Template::parse(std::string_view text, const std::string& place) {
  require(is_utf8(text), ErrorKind::data, "'{}': a template that is no UTF-8 text", place);
  Template made;
  made.program_ = parse_template(text, place);
  return made;
}

MarkedText Template::render(const TemplateVariables& variables,
                            const TemplateLimits& limits) const {
  return Renderer(*program_, variables, limits).run();
}

bool Template::has_generation_blocks() const {
  return program_->has_generation;
}

bool Template::reads(std::string_view name) const {
  return program_->read.contains(name);
}

}  // namespace rankine
