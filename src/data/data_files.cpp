#include "data/data_files.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/file.h"
#include "base/lfs_pointer.h"
#include "data/token_file.h"
#include "data/token_formats.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view supported =
    "give plain text or JSON lines, also compressed with gzip or Zstandard, or token files of "
    "Rankine, llm.c, Megatron-LM or raw u16/u32 (--data-format)";
constexpr std::string_view to_json_lines =
    "convert it to JSON lines, with DuckDB for example: COPY (SELECT text FROM 'FILE') TO "
    "'FILE.jsonl'";
constexpr std::string_view to_text = "unpack it and give the files in it";

bool is_hidden(const fs::path& path) {
  return path.filename().native().starts_with('.');
}

bool is_index_of_bin(const fs::path& path) {
  return path.extension() == ".idx" && is_there(fs::path(path).replace_extension(".bin"));
}

// What is no file (a FIFO, a link that leads nowhere) counts as data: opening it names the fault.
bool is_data(const fs::directory_entry& entry) {
  std::error_code ignored;
  if (!entry.is_directory(ignored)) return true;
  require(!entry.is_symlink(ignored), ErrorKind::data,
          "'{}' is a link to a folder, and links are not followed within a folder of data; name it "
          "in --data",
          entry.path().string());
  return false;
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
  std::string_view bytes, what, cure;
};

constexpr std::string_view gzip_mark = "\x1f\x8b", zstd_mark = "\x28\xb5\x2f\xfd";
constexpr uint64_t tar_mark_place = 257;

// By contents, since names lie.
constexpr std::array<Mark, 10> marks{
    {{gzip_mark, "gzip data within gzip or Zstandard data", "decompress the file once"},
     {zstd_mark, "Zstandard data within gzip or Zstandard data", "decompress the file once"},
     {"PAR1", "Parquet", to_json_lines},
     {"ARROW1", "Arrow", to_json_lines},
     {"PK\x03\x04", "a zip archive", to_text},
     {"BZh", "bzip2 data", supported},
     {"\xfd\x37zXZ", "xz data", supported},
     {"\x93NUMPY", "a NumPy array", supported},
     {"\xff\xfe", "UTF-16 text", "convert the file to UTF-8"},
     {"\xfe\xff", "UTF-16 text", "convert the file to UTF-8"}}};

constexpr std::array<Mark, 8> endings{{{".parquet", "Parquet", to_json_lines},
                                       {".arrow", "Arrow", to_json_lines},
                                       {".tar", "a tar archive", to_text},
                                       {".tgz", "a tar archive", to_text},
                                       {".zip", "a zip archive", to_text},
                                       {".npy", "a NumPy array", supported},
                                       {".pt", "a PyTorch file", supported},
                                       {".safetensors", "a safetensors file", supported}}};

void refuse_unsupported(const fs::path& path, const fs::path& inner, std::string_view beginning) {
  const auto refuse = [&](const Mark& mark) {
    fail(ErrorKind::data, "'{}' is {}, which is not supported; {}", path.string(), mark.what,
         mark.cure);
  };
  for (const Mark& ending : endings)
    if (inner.extension() == ending.bytes) refuse(ending);
  for (const Mark& mark : marks)
    if (beginning.starts_with(mark.bytes)) refuse(mark);
  if (beginning.size() > tar_mark_place && beginning.substr(tar_mark_place).starts_with("ustar"))
    refuse({"", "a tar archive", to_text});
}

// The first bytes of what the file holds.
std::string beginning_of(const fs::path& path, Compression compression) {
  std::string out(1024, '\0');
  const auto stream = open_stream(path, compression);
  size_t filled = 0;
  for (size_t got = 1; got > 0 && filled < out.size(); filled += got)
    got = stream->read(out.data() + filled, out.size() - filled);
  out.resize(filled);
  return out;
}

Compression compression_of(const fs::path& path, std::string_view beginning) {
  if (beginning.starts_with(gzip_mark)) return Compression::gzip;
  if (beginning.starts_with(zstd_mark)) return Compression::zstd;
  for (const auto& [ending, what] : {std::pair{".gz", "gzip"}, std::pair{".zst", "Zstandard"}})
    require(path.extension() != ending || beginning.empty(), ErrorKind::data,
            "'{}' is no {} data, whatever its name says; rename it, or get it again", path.string(),
            what);
  return Compression::none;
}

// Whether text that says nothing more of itself is JSON lines.
bool looks_like_json_lines(const fs::path& path, const fs::path& inner,
                           std::string_view beginning) {
  if (inner.extension() == ".jsonl" || inner.extension() == ".ndjson") return true;
  if (inner.extension() != ".json") return false;
  const size_t first = beginning.find_first_not_of(" \t\r\n");
  require(first == std::string_view::npos || beginning[first] != '[', ErrorKind::data,
          "'{}' is one JSON list, not JSON lines; convert it: jq -c '.[]' FILE > FILE.jsonl (or "
          "--data-format text to train on it as it is)",
          path.string());
  return first != std::string_view::npos && beginning[first] == '{';
}

}  // namespace

std::vector<fs::path> expand_paths(const std::vector<fs::path>& paths) {
  std::vector<fs::path> out;
  const auto append = [&](const fs::path& path) {
    if (is_folder(path)) {
      const auto files = files_in(path);
      out.insert(out.end(), files.begin(), files.end());
    } else {
      File::open_read(path);  // names what it is, if that is no file
      out.push_back(path);
    }
  };
  for (const fs::path& path : paths) {
    if (is_there(path)) {
      append(path);
      continue;
    }
    require(path.native().find_first_of("*?[") != std::string::npos, ErrorKind::data,
            "data file '{}' does not exist", path.string());
    const std::vector<fs::path> matches = matches_of(path);
    require(!matches.empty(), ErrorKind::data, "no file matches '{}'", path.string());
    for (const fs::path& match : matches)
      if (!is_index_of_bin(match)) append(match);
  }
  return out;
}

DataFile detect_format(const fs::path& path, DataFormat wanted) {
  using enum DataFormat;
  const bool of_text = wanted == text || wanted == jsonl || wanted == instructions;
  std::string beginning = beginning_of(path, Compression::none);
  require(!is_lfs_pointer(beginning), ErrorKind::data, "'{}' is {}", path.string(),
          lfs_pointer_text);
  if (wanted != automatic && !of_text) return {path, wanted};
  const FileBytes raw(reinterpret_cast<const uint8_t*>(beginning.data()), beginning.size());
  if (wanted == automatic) {
    if (looks_like_token_file(raw)) return {path, tokens};
    if (looks_like_megatron_index(raw)) return {path, megatron};
    if (looks_like_llmc(raw)) return {path, llmc};
    if (path.extension() == ".bin" && is_there(megatron_index(path))) return {path, megatron};
    require(
        path.extension() != ".bin", ErrorKind::data,
        "'{}': raw tokens do not say how wide they are; give --data-format raw-u16 (nanoGPT) or "
        "raw-u32",
        path.string());
  }
  const Compression compression = compression_of(path, beginning);
  fs::path inner = path;
  if (compression != Compression::none) {
    beginning = beginning_of(path, compression);
    if (path.extension() == ".gz" || path.extension() == ".zst") inner = path.stem();
  }
  refuse_unsupported(path, inner, beginning);
  if (wanted != automatic) return {path, wanted, compression};
  return {path, looks_like_json_lines(path, inner, beginning) ? jsonl : text, compression};
}

std::vector<DataFile> list_files(const TextOptions& options) {
  return list_files(options.data, options);
}

std::vector<DataFile> list_files(const std::vector<fs::path>& paths, const TextOptions& options) {
  std::vector<DataFile> out;
  for (const fs::path& path : expand_paths(paths)) {
    out.push_back(detect_format(path, options.format));
    out.back().max_expansion = options.max_expansion;
    if (out.back().holds_text() != out.front().holds_text())
      fail(ErrorKind::data, "'{}' and '{}': text and token files cannot be mixed in one corpus",
           out.front().path.string(), path.string());
  }
  return out;
}

fs::path megatron_bin(const fs::path& path) {
  return fs::path(path).replace_extension(".bin");
}

fs::path megatron_index(const fs::path& path) {
  return fs::path(path).replace_extension(".idx");
}

}  // namespace rankine
