#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

// The allowed edges between rooms, as docs/architecture.md draws them: who may include whom.
namespace rankine {
namespace {

using Rooms = std::set<std::string>;

const std::map<std::string, Rooms>& allowed() {
  static const std::map<std::string, Rooms> edges = [] {
    const std::map<std::string, Rooms> direct = {
        {"base", {}},
        {"tensor", {"base"}},
        {"io", {"tensor"}},
        {"launch", {"base"}},
        {"schedule", {"base"}},
        {"template", {"base"}},
        {"comm", {"tensor", "launch"}},
        {"ops", {"tensor"}},
        {"model", {"ops", "comm"}},
        {"state", {"model", "comm", "io"}},
        {"data", {"tensor", "template"}},
        {"checkpoint", {"state", "data"}},
        {"machine", {"ops"}},
        {"options", {"state", "schedule"}},
        {"plan", {"model", "state", "schedule"}},
        {"planner", {"plan"}},
        {"runtime", {"plan", "options", "machine", "data", "checkpoint"}},
        {"inference", {"runtime"}},
        {"library", {"runtime", "planner", "inference"}}};
    std::map<std::string, Rooms> all = direct;
    for (bool grew = true; grew;) {
      grew = false;
      for (auto& [room, needs] : all)
        for (const std::string& need : Rooms(needs))
          for (const std::string& further : all.at(need))
            grew = needs.insert(further).second || grew;
    }
    return all;
  }();
  return edges;
}

// What an #include line names between quotes or angles, "" for other lines.
std::string included(const std::string& line) {
  constexpr std::string_view word = "#include ";
  if (!line.starts_with(word)) return "";
  const size_t end = line.find_first_of("\">", word.size() + 1);
  return end == std::string::npos ? "" : line.substr(word.size() + 1, end - word.size() - 1);
}

bool is_source(const std::filesystem::path& path) {
  return path.extension() == ".h" || path.extension() == ".cpp";
}

TEST(Rooms, IncludesFollowTheAllowedEdges) {
  const std::filesystem::path source = std::filesystem::path(RANKINE_SOURCE_DIR) / "src";
  int edges = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source)) {
    if (!is_source(entry.path())) continue;
    const std::string room = entry.path().lexically_relative(source).begin()->string();
    ASSERT_TRUE(allowed().contains(room)) << entry.path() << " lies in no known room";
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const std::string path = included(line);
      const std::string other = path.substr(0, path.find('/'));
      if (!allowed().contains(other) || path == other || other == room) continue;
      EXPECT_TRUE(allowed().at(room).contains(other))
          << entry.path() << ": " << room << " may not include " << other;
      ++edges;
    }
  }
  EXPECT_GT(edges, 50) << "the test reads nothing";
}

TEST(Rooms, VendorHeadersStayInTheirFolders) {
  const std::filesystem::path source = std::filesystem::path(RANKINE_SOURCE_DIR) / "src";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source)) {
    if (!is_source(entry.path())) continue;
    const std::string place = entry.path().lexically_relative(source).string();
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      for (const char* vendor : {"dnnl", "oneapi", "mpi", "nccl", "cuda", "cublas", "cudnn", "omp"})
        if (included(line).starts_with(vendor)) {
          EXPECT_TRUE(place.starts_with("ops/cpu") || place.starts_with("comm"))
              << place << ": " << line;
        }
      if (included(line).starts_with("liburing")) {
        EXPECT_TRUE(place.starts_with("io/uring")) << place << ": " << line;
      }
    }
  }
}

TEST(Rooms, FilesStayUnderFourHundredLines) {
  const std::filesystem::path root = RANKINE_SOURCE_DIR;
  for (const char* folder : {"src", "app", "tests", "bench"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (!is_source(entry.path())) continue;
      std::ifstream file(entry.path());
      int lines = 0;
      for (std::string line; std::getline(file, line);) ++lines;
      EXPECT_LE(lines, 400) << entry.path();
    }
}

}  // namespace
}  // namespace rankine
