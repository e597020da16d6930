#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "data/byte_stream.h"
#include "data/options.h"

// From what a user names to a list of files and what each of them is.
namespace rankine {

struct DataFile {
  std::filesystem::path path;
  DataFormat format = DataFormat::text;  // never automatic
  Compression compression = Compression::none;
  double max_expansion = usual_expansion;

  bool is_lines() const {
    return format == DataFormat::jsonl || format == DataFormat::instructions;
  }
  bool holds_text() const { return format == DataFormat::text || is_lines(); }
};

// Files in the given order; a folder gives its files sorted by path (hidden ones and the .idx
// beside a .bin left out), a glob its matches sorted. Error{data} when one gives nothing.
std::vector<std::filesystem::path> expand_paths(const std::vector<std::filesystem::path>& paths);

// What the file is, by `wanted` or by its contents. Error{data} for kinds that are not supported
// (Parquet, archives, UTF-16, ...) and for raw tokens, which have no mark.
DataFile detect_format(const std::filesystem::path& path, DataFormat wanted);
// Both for all paths, as the options have it. Error{data} when some hold text and others tokens.
std::vector<DataFile> list_files(const std::vector<std::filesystem::path>& paths,
                                 const TextOptions& options);
std::vector<DataFile> list_files(const TextOptions& options);  // of its --data

// The .bin and .idx of a Megatron data set named by either of them.
std::filesystem::path megatron_bin(const std::filesystem::path& path);
std::filesystem::path megatron_index(const std::filesystem::path& path);

}  // namespace rankine
