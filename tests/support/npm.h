#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "support/command.h"

namespace rankine::test {

inline Finished run_tool(const std::filesystem::path& home, const std::string& tool,
                         const std::vector<std::string>& arguments) {
  return run_command(home, arguments, {.words = {tool}, .prepare = {}});
}

// Copies a folder of tests/support, scripts beside a package.json, to `to` and installs what it
// depends on; false where there is no node, no npm or no registry.
inline bool install_npm_folder(const std::filesystem::path& home, const std::string& folder,
                               const std::filesystem::path& to) {
  if (run_tool(home, "node", {"--version"}).code != 0 ||
      run_tool(home, "npm", {"--version"}).code != 0)
    return false;
  std::filesystem::copy(std::filesystem::path(RANKINE_SOURCE_DIR) / "tests/support" / folder, to);
  return run_tool(home, "npm",
                  {"install", "--prefix", to.string(), "--no-audit", "--no-fund", "--fetch-retries",
                   "1", "--fetch-timeout", "20000"})
             .code == 0;
}

}  // namespace rankine::test
