#pragma once
#include <filesystem>
#include <string>
#include <string_view>

// Names of what is being made: "<target>.rankine-<host>-<process>-<16 digits>.tmp". Who makes it
// holds its lock, so that nothing else is ever taken for a left-over of a process that died.
namespace rankine {

// A new one each time.
std::filesystem::path temporary_name(const std::filesystem::path& target);
bool is_temporary_name(std::string_view name);  // of a file or folder, without its path

// Removes the files and folders with such names whose makers are dead; returns how many.
int remove_abandoned(const std::filesystem::path& folder);

// Who is making the target at this moment: "process 12 on host"; "" when nobody is.
std::string maker_of(const std::filesystem::path& target);
// Sleeps until nobody is.
void await_maker(const std::filesystem::path& target);

// Makes an empty folder of such a name and returns its descriptor, which holds the lock.
int make_temporary_folder(const std::filesystem::path& target, std::filesystem::path& made);

}  // namespace rankine
