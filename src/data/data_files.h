#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "data/options.h"

// From what a user names to a list of files and what each of them is.
namespace rankine {

// Files in the given order; a folder gives its files sorted by path (hidden ones and the .idx
// beside a .bin left out), a glob its matches sorted. Error{data} when one gives nothing.
std::vector<std::filesystem::path> expand_paths(const std::vector<std::filesystem::path>& paths);

// What the file is, by `wanted` or by its contents; never `automatic`. Error{data} for kinds that
// are not supported (JSON lines, compressed, Parquet, UTF-16, ...) and for raw tokens, which have
// no mark.
DataFormat detect_format(const std::filesystem::path& path, DataFormat wanted);

// The .bin and .idx of a Megatron data set named by either of them.
std::filesystem::path megatron_bin(const std::filesystem::path& path);
std::filesystem::path megatron_index(const std::filesystem::path& path);

}  // namespace rankine
