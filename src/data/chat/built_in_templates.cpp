#include "data/chat/chat_template.h"

// Templates by name, for models that have none. Each writes what the family's own does for plain
// conversations; tools are for the model's own template.
namespace rankine {
namespace {

constexpr std::string_view llama3 =
    "{{ '<|begin_of_text|>' }}"
    "{%- for message in messages -%}"
    "{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}"
    "{{ message.content | trim }}{{ '<|eot_id|>' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
    "{%- endif -%}";

// The dates are those that the family's template falls back to.
constexpr std::string_view llama31 =
    "{%- set preface = 'Cutting Knowledge Date: December 2023\\nToday Date: 26 Jul 2024\\n\\n' -%}"
    "{%- set with_system = messages[0].role == 'system' -%}"
    "{{ '<|begin_of_text|><|start_header_id|>system<|end_header_id|>\\n\\n' + preface }}"
    "{%- if with_system -%}{{ messages[0].content | trim }}{%- endif -%}{{ '<|eot_id|>' }}"
    "{%- for message in messages -%}"
    "{%- if not (loop.first and with_system) -%}"
    "{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}"
    "{{ message.content | trim }}{{ '<|eot_id|>' }}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
    "{%- endif -%}";

constexpr std::string_view chatml =
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message.role + '\\n' }}{{ message.content }}{{ '<|im_end|>\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}";

// What was thought stays behind the last question only, and is empty there where nothing was.
constexpr std::string_view qwen3 =
    "{%- set last = namespace(question=-1) -%}"
    "{%- for message in messages -%}"
    "{%- if message.role == 'user' -%}{%- set last.question = loop.index0 -%}{%- endif -%}"
    "{%- endfor -%}"
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' -%}"
    "{%- set reply = message.content -%}"
    "{%- set thought = '' -%}"
    "{%- if message.reasoning_content is string -%}"
    "{%- set thought = message.reasoning_content.strip('\\n') -%}"
    "{%- elif '</think>' in reply -%}"
    "{%- set thought = "
    "reply.split('</think>')[0].split('<think>')[-1].lstrip('\\n').rstrip('\\n') -%}"
    "{%- set reply = reply.split('</think>')[-1].lstrip('\\n') -%}"
    "{%- endif -%}"
    "{%- if loop.index0 > last.question and (loop.last or thought) -%}"
    "{{ '<think>\\n' }}{{ thought }}{{ '\\n</think>\\n\\n' }}{{ reply.lstrip('\\n') }}"
    "{%- else -%}"
    "{{ reply }}"
    "{%- endif -%}"
    "{%- else -%}"
    "{{ message.content }}"
    "{%- endif -%}"
    "{{ '<|im_end|>\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}";

constexpr std::string_view mistral =
    "{%- set system = '' -%}{%- set turns = messages -%}"
    "{%- if messages[0].role == 'system' -%}"
    "{%- set system = messages[0].content -%}{%- set turns = messages[1:] -%}"
    "{%- endif -%}"
    "{{ bos_token or '<s>' }}"
    "{%- for message in turns -%}"
    "{%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{ raise_exception('user and assistant speak in turn, the user first') }}"
    "{%- endif -%}"
    "{%- if message.role == 'user' -%}"
    "{{ '[INST] ' }}"
    "{%- if loop.first and system -%}{{ system }}{{ '\\n\\n' }}{%- endif -%}"
    "{{ message.content }}{{ '[/INST]' }}"
    "{%- else -%}"
    "{{ ' ' }}{{ message.content }}{{ eos_token or '</s>' }}"
    "{%- endif -%}"
    "{%- endfor -%}";

constexpr std::string_view llama2 =
    "{%- set system = '' -%}{%- set turns = messages -%}"
    "{%- if messages[0].role == 'system' -%}"
    "{%- set system = messages[0].content -%}{%- set turns = messages[1:] -%}"
    "{%- endif -%}"
    "{%- for message in turns -%}"
    "{%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{ raise_exception('user and assistant speak in turn, the user first') }}"
    "{%- endif -%}"
    "{%- if message.role == 'user' -%}"
    "{{ bos_token or '<s>' }}{{ '[INST] ' }}"
    "{%- if loop.first and system -%}"
    "{{ '<<SYS>>\\n' }}{{ system }}{{ '\\n<</SYS>>\\n\\n' }}"
    "{%- endif -%}"
    "{{ message.content | trim }}{{ ' [/INST]' }}"
    "{%- else -%}"
    "{{ ' ' }}{{ message.content | trim }}{{ ' ' }}{{ eos_token or '</s>' }}"
    "{%- endif -%}"
    "{%- endfor -%}";

constexpr std::string_view plain =
    "{%- if bos_token and bos_token != eos_token -%}{{ bos_token }}{%- endif -%}"
    "{%- for message in messages -%}"
    "{%- if message.role == 'assistant' -%}"
    "{{ 'Assistant: ' }}{{ message.content }}{{ eos_token or '' }}{{ '\\n' }}"
    "{%- else -%}"
    "{{ 'User: ' if message.role == 'user' else 'System: ' }}{{ message.content }}{{ '\\n' }}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ 'Assistant:' }}{%- endif -%}";

}  // namespace

const std::vector<BuiltInTemplate>& built_in_templates() {
  const std::vector<std::string> headers{"<|begin_of_text|>", "<|start_header_id|>",
                                         "<|end_header_id|>", "<|eot_id|>"};
  const std::vector<std::string> marks{"<|im_start|>", "<|im_end|>"};
  static const std::vector<BuiltInTemplate> all{
      {"llama3", llama3, headers}, {"llama3.1", llama31, headers}, {"chatml", chatml, marks},
      {"qwen3", qwen3, marks},     {"mistral", mistral, {}},       {"llama2", llama2, {}},
      {"plain", plain, {}}};
  return all;
}

}  // namespace rankine
