#include "base/error.h"
#include "checkpoint/hf_config.h"

// Any bytes as a config.json: a config that is written and read back equal, or Error{data}.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const rankine::ModelConfig config = rankine::parse_hf_config(text, "input");
    if (config.layers > 1000) return 0;
    const std::string written = rankine::hf_config_text(config, rankine::DType::f32);
    if (rankine::parse_hf_config(written, "written") != config) __builtin_trap();
  } catch (const rankine::Error& error) {
    if (error.kind() != rankine::ErrorKind::data) __builtin_trap();
  }
  return 0;
}
