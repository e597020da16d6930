#pragma once
#include <vector>

#include "base/options.h"
#include "data/data_files.h"

// What a user says of data against what the files are.
namespace rankine {

// Error{usage} for options of the table that are given and say how to read other kinds of files
// than these.
void refuse_idle_options(const OptionTable& table, const std::vector<DataFile>& files);

// Error{usage} when two of them are one file, by whatever names: it would count twice.
void require_distinct(const std::vector<DataFile>& files);

}  // namespace rankine
