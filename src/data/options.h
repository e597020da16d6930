#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/options.h"

// What a user says about training data.
namespace rankine {

// `automatic` tells files apart by their contents and refuses to guess between raw_u16 and raw_u32.
enum class DataFormat : uint8_t { automatic, text, raw_u16, raw_u32, llmc, megatron };
enum class Tokenizer : uint8_t { bytes };  // of text files

struct DataOptions {
  std::vector<std::filesystem::path> data;  // files, folders (recursive) and globs
  DataFormat format = DataFormat::automatic;
  Tokenizer tokenizer = Tokenizer::bytes;
  double validation_fraction = 0.01;  // of the windows, the last ones; 0: none
};

void declare_options(OptionTable& table, DataOptions& options);

}  // namespace rankine
