#include "base/error.h"
#include "checkpoint/manifest.h"

// Any bytes as a manifest.json: a manifest that is written and read back equal, or Error{data}.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    rankine::Manifest manifest = rankine::parse_manifest(text, "input");
    manifest.sealed = true;  // as what is written
    if (rankine::parse_manifest(rankine::manifest_text(manifest), "written") != manifest)
      __builtin_trap();
  } catch (const rankine::Error& error) {
    if (error.kind() != rankine::ErrorKind::data) __builtin_trap();
  }
  return 0;
}
