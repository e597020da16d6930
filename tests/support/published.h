#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

// Papers' tables as comma-separated files.
namespace rankine::test {

// $RANKINE_PUBLISHED, or ../shared/published beside the sources; may not exist.
inline std::filesystem::path published_folder() {
  const char* set = std::getenv("RANKINE_PUBLISHED");
  return set != nullptr ? std::filesystem::path(set)
                        : std::filesystem::path(RANKINE_SOURCE_DIR) / "../shared/published";
}

using Cells = std::vector<std::string>;

// The rows of a table behind its heading, cut at every comma (behind a quoted cell, cells are not
// to be relied on); empty where the table is not there.
inline std::vector<Cells> published_rows(const std::string& name) {
  std::ifstream file(published_folder() / name);
  std::vector<Cells> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream stream(line);
    rows.emplace_back();
    for (std::string cell; std::getline(stream, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

}  // namespace rankine::test
