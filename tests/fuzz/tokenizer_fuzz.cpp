#include <cstdint>
#include <string>

#include "base/error.h"
#include "data/tokenizer/bpe_tokenizer.h"

// A tokenizer.json, a NUL and a text: either Error{data}, or a tokenizer that keeps every text it
// says it keeps, and whose own text gives the same tokenizer. Without a NUL, the text is put
// through a byte-level tokenizer, as is every text after a damaged file.
namespace {

using rankine::BpeTokenizer;

std::string byte_level() {
  std::string vocabulary;
  const auto add = [&](const std::string& token, int id) {
    vocabulary += fmt::format("{}\"{}\":{}", id == 0 ? "" : ",", token, id);
  };
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    add(fmt::format("\\u{:04x}", printable ? byte : next++), byte);
  }
  add("ab", 256);
  add("abab", 257);
  return R"({"added_tokens":[{"id":258,"content":"<x>","special":true}],
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},
    "decoder":{"type":"ByteLevel"},"model":{"vocab":{)" +
         vocabulary + R"(},"merges":["a b",["ab","ab"]]}})";
}

void try_text(const BpeTokenizer& tokenizer, std::string_view text) {
  for (const bool parse : {false, true}) {
    const rankine::TokenIds ids = tokenizer.encode(text, {.parse_special = parse});
    const std::string back = tokenizer.decode(ids);
    if (!parse && tokenizer.keeps_text() && back != text) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const BpeTokenizer standard = BpeTokenizer::parse(byte_level(), "standard");
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.find('\0');
  try_text(standard, input);
  try {
    const BpeTokenizer tokenizer = BpeTokenizer::parse(input.substr(0, nul), "input");
    if (BpeTokenizer::parse(tokenizer.json(), "again").hash() != tokenizer.hash()) __builtin_trap();
    if (nul != std::string_view::npos) try_text(tokenizer, input.substr(nul + 1));
  } catch (const rankine::Error& error) {
    if (error.kind() != rankine::ErrorKind::data) __builtin_trap();
  }
  return 0;
}
