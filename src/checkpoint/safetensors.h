#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

// Files in the safetensors format: an 8-byte length, a JSON header, raw little-endian tensors.
// Rule: nothing a header says is believed before it is checked against the file's size.
namespace rankine {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;   // any rank
  uint64_t begin = 0, end = 0;  // bytes from the start of the file
  int64_t elements() const { return static_cast<int64_t>(end - begin) / dtype_bytes(dtype); }
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        // in the order of their bytes
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

// "F32", "BF16", ...: the format's word for a dtype.
std::string_view safetensors_dtype_name(DType dtype);

// Bytes of length and header together, from the first bytes (512 are enough) of a file of
// `file_bytes`. Error{data} when it is no safetensors file, saying what it looks like instead.
uint64_t safetensors_header_bytes(std::string_view start, uint64_t file_bytes,
                                  std::string_view what);
// The checked header; `start` holds at least safetensors_header_bytes. Error{data} for unknown
// dtypes, names given twice, and ranges that overlap, leave gaps or do not fit shape or file.
SafetensorsHeader parse_safetensors_header(std::string_view start, uint64_t file_bytes,
                                           std::string_view what);

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const File& file() const { return file_; }
  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const SafetensorsEntry* find(std::string_view name) const;  // null pointer when absent

  // Elements [first, first + count) of an entry as they are stored.
  void read(const SafetensorsEntry& entry, int64_t first, int64_t count, void* into) const;
  // The same as f32, from f32, bf16, f16 or f64; Error{data} for other dtypes.
  void read_floats(const SafetensorsEntry& entry, int64_t first, std::span<float> into) const;

 private:
  File file_;
  SafetensorsHeader header_;
  std::map<std::string, size_t, std::less<>> index_;
};

struct SafetensorsTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// Writes a file whose tensors are listed first and filled afterwards in any order. The same calls
// give the same bytes.
class SafetensorsWriter {
 public:
  // `metadata` gets {"format": "pt"} added, without which some readers refuse the file.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<SafetensorsTensor> tensors,
                    std::map<std::string, std::string> metadata = {});

  const std::string& header() const { return header_; }  // the bytes before the first tensor
  // Elements [first, first + count) of the listed tensor, given in its dtype.
  void write(size_t tensor, int64_t first, const void* elements, int64_t count);
  // The same from f32, rounded to nearest even where the dtype is bf16 or f16.
  void write_floats(size_t tensor, int64_t first, std::span<const float> values);
  // fsync and close; returns the file's size. Internal error when bytes are missing.
  uint64_t finish();

 private:
  File file_;
  std::vector<SafetensorsTensor> tensors_;
  std::vector<uint64_t> begins_;  // from the start of the file
  std::string header_;
  uint64_t file_bytes_ = 0, written_bytes_ = 0;
};

}  // namespace rankine
