#pragma once
#include <string_view>

// What Git leaves where a large file belongs until it is downloaded.
namespace rankine {

inline bool is_lfs_pointer(std::string_view text) {
  return text.starts_with("version https://git-lfs");
}
// For messages, behind "'FILE' is ".
constexpr std::string_view lfs_pointer_text =
    "a Git LFS pointer, not the file itself; run 'git lfs pull' or download the file";

}  // namespace rankine
