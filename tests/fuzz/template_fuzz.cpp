#include <cstdint>
#include <string_view>

#include "template/template.h"
#include "template/template_json.h"

// Any bytes as a template over one conversation: it is refused, or rendered within its limits, and
// the spans cover the text. No error is of another kind than data.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankine;
  static const TemplateVariables variables = [] {
    TemplateVariables made;
    made.unix_time = 1'700'000'000;
    made.values["messages"] = template_value(
        R"([{"role": "system", "content": "a\nb"}, {"role": "user", "content": "\u00e9 \"x\"", "n": 1.5},
            {"role": "assistant", "content": null, "tool_calls": [{"f": {"a": [1, true, {}]}}]}])",
        1, "messages");
    made.values["tools"] = template_value(R"([{"name": "f", "items": {"k": ["v"]}}])", 2, "tools");
    made.values["s"] = template_value(R"("Hello World")", 3, "s");
    made.values["n"] = TemplateValue::integer(7);
    made.values["xs"] = template_value("[3, 1, 2]", 4, "xs");
    made.values["add_generation_prompt"] = TemplateValue::boolean(true);
    return made;
  }();
  const TemplateLimits limits{
      .steps = 20'000, .output_bytes = 1 << 20, .depth = 200, .memory_bytes = 4 << 20};
  try {
    const MarkedText text =
        Template::parse({reinterpret_cast<const char*>(data), size}, "t").render(variables, limits);
    size_t covered = 0;
    for (const TextSpan& span : text.spans()) covered += span.bytes;
    if (covered != text.size() || text.size() > limits.output_bytes) __builtin_trap();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) __builtin_trap();
  }
  return 0;
}
