#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

// The regular expressions that cut text into words before merges, as hand-written scanners: the
// expressions of GPT-2, Llama 3 and Qwen 2 to 3. Together the words are the whole text.
namespace rankine {

enum class SplitPattern { gpt2, llama3, qwen };

// The expression as tokenizer.json spells it.
std::string_view pattern_regex(SplitPattern pattern);
// The pattern that is spelled like this, or none.
std::optional<SplitPattern> find_pattern(std::string_view regex);
// Bytes of the word that begins at byte `at` < text.size(). What lies before does not matter.
size_t word_bytes(SplitPattern pattern, std::string_view text, size_t at);

}  // namespace rankine
