#include "data/data_files.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/file.h"
#include "data/token_formats.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view supported =
    "give plain text, or token files of llm.c, Megatron-LM or raw u16/u32 (--data-format)";

bool is_hidden(const fs::path& path) {
  return path.filename().native().starts_with('.');
}

bool is_index_of_bin(const fs::path& path) {
  return path.extension() == ".idx" && fs::exists(fs::path(path).replace_extension(".bin"));
}

// A dangling link counts as data: opening it names the fault.
bool is_data(const fs::directory_entry& entry) {
  std::error_code ignored;
  return !entry.exists(ignored) || entry.is_regular_file(ignored);
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code code;
  for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    if (is_hidden(it->path())) {
      it.disable_recursion_pending();
    } else if (is_data(*it) && !is_index_of_bin(it->path())) {
      out.push_back(it->path());
    }
  }
  require(!code, ErrorKind::environment, "cannot read folder '{}': {}", folder.string(),
          code.message());
  require(!out.empty(), ErrorKind::data, "data folder '{}' has no files in it", folder.string());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> matches_of(const fs::path& pattern) {
  glob_t found{};
  std::vector<fs::path> out;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  std::sort(out.begin(), out.end());
  return out;
}

struct Mark {
  std::string_view bytes, what;
};

// By contents, since names lie.
constexpr std::array<Mark, 9> marks{{{"\x1f\x8b", "gzip"},
                                     {"\x28\xb5\x2f\xfd", "Zstandard"},
                                     {"PAR1", "Parquet"},
                                     {"PK\x03\x04", "zip"},
                                     {"BZh", "bzip2"},
                                     {"\xfd\x37zXZ", "xz"},
                                     {"\x93NUMPY", "NumPy"},
                                     {"\xff\xfe", "UTF-16 text"},
                                     {"\xfe\xff", "UTF-16 text"}}};

constexpr std::array<Mark, 9> endings{{{".jsonl", "JSON lines"},
                                       {".ndjson", "JSON lines"},
                                       {".gz", "gzip"},
                                       {".zst", "Zstandard"},
                                       {".parquet", "Parquet"},
                                       {".arrow", "Arrow"},
                                       {".npy", "NumPy"},
                                       {".pt", "PyTorch"},
                                       {".safetensors", "safetensors"}}};

void refuse_unsupported(const fs::path& path, std::string_view beginning) {
  for (const auto& [ending, what] : endings)
    require(path.extension() != ending, ErrorKind::data, "'{}': {} data is not supported; {}",
            path.string(), what, supported);
  for (const auto& [bytes, what] : marks)
    require(!beginning.starts_with(bytes), ErrorKind::data, "'{}': {}{} is not supported; {}",
            path.string(), what, what.starts_with("UTF-16") ? "" : " data",
            what.starts_with("UTF-16") ? "convert the file to UTF-8" : supported);
}

}  // namespace

std::vector<fs::path> expand_paths(const std::vector<fs::path>& paths) {
  std::vector<fs::path> out;
  const auto append = [&](const fs::path& path) {
    if (fs::is_directory(path)) {
      const auto files = files_in(path);
      out.insert(out.end(), files.begin(), files.end());
    } else {
      require(fs::is_regular_file(path), ErrorKind::data, "'{}' is neither a file nor a folder",
              path.string());
      out.push_back(path);
    }
  };
  for (const fs::path& path : paths) {
    std::error_code code;
    if (fs::exists(path, code)) {
      append(path);
      continue;
    }
    require(!code, ErrorKind::environment, "cannot reach '{}': {}", path.string(), code.message());
    require(path.native().find_first_of("*?[") != std::string::npos, ErrorKind::data,
            "data file '{}' does not exist", path.string());
    const std::vector<fs::path> matches = matches_of(path);
    require(!matches.empty(), ErrorKind::data, "no file matches '{}'", path.string());
    for (const fs::path& match : matches)
      if (!is_index_of_bin(match)) append(match);
  }
  return out;
}

DataFormat detect_format(const fs::path& path, DataFormat wanted) {
  using enum DataFormat;
  if (wanted != automatic && wanted != text) return wanted;
  const File file = File::open_read(path);
  std::array<char, 1024> buffer{};
  const uint64_t bytes = std::min<uint64_t>(file.size(), buffer.size());
  file.read(buffer.data(), bytes, 0);
  const std::string_view beginning(buffer.data(), bytes);
  const FileBytes raw(reinterpret_cast<const uint8_t*>(buffer.data()), bytes);
  if (wanted == automatic) {
    if (looks_like_megatron_index(raw)) return megatron;
    if (looks_like_llmc(raw)) return llmc;
    if (path.extension() == ".bin" && fs::exists(megatron_index(path))) return megatron;
    require(
        path.extension() != ".bin", ErrorKind::data,
        "'{}': raw tokens do not say how wide they are; give --data-format raw-u16 (nanoGPT) or "
        "raw-u32",
        path.string());
  }
  refuse_unsupported(path, beginning);
  return text;
}

fs::path megatron_bin(const fs::path& path) {
  return fs::path(path).replace_extension(".bin");
}

fs::path megatron_index(const fs::path& path) {
  return fs::path(path).replace_extension(".idx");
}

}  // namespace rankine
