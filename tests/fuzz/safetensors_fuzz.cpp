#include "base/error.h"
#include "checkpoint/safetensors.h"

// Any bytes as a safetensors file: a checked header or Error{data}.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    rankine::parse_safetensors_header(bytes, size, "input");
  } catch (const rankine::Error& error) {
    if (error.kind() != rankine::ErrorKind::data) __builtin_trap();
  }
  return 0;
}
