#pragma once
#include <filesystem>
#include <string>
#include <vector>

// Folders that hold something near a Hugging Face model: what is there, and what to do about it.
namespace rankine {

// For a folder without a config.json. Throws Error{data}.
[[noreturn]] void fail_without_config(const std::filesystem::path& folder);
// For one without safetensors under the names that are read. Throws Error{data}.
[[noreturn]] void fail_without_weights(const std::filesystem::path& folder);
// What lies beside a model's files and is left out, where one could think that it counts.
std::vector<std::string> hf_folder_notes(const std::filesystem::path& folder);
// Whether the name, or the link of that name, leads to something.
bool reaches_file(const std::filesystem::path& file);
// "is absent", or "is a link to 'X', which is absent".
std::string absence_text(const std::filesystem::path& file);

}  // namespace rankine
