#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "checkpoint/json.h"

namespace rankine {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read without byte swaps");

constexpr int64_t chunk_elements = 1 << 16;

template <class Stored>
void widen(const char* from, std::span<float> into) {
  for (size_t i = 0; i < into.size(); ++i) {
    Stored value;
    std::memcpy(&value, from + i * sizeof(Stored), sizeof(Stored));
    if constexpr (std::is_same_v<Stored, double>) {
      into[i] = static_cast<float>(value);
    } else {
      into[i] = to_float(value);
    }
  }
}

template <class Stored>
void narrow(std::span<const float> values, std::vector<char>& out) {
  out.resize(values.size() * sizeof(Stored));
  for (size_t i = 0; i < values.size(); ++i) {
    const Stored value = from_float<Stored>(values[i]);
    std::memcpy(out.data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
}

SafetensorsHeader read_header(const File& file) {
  const uint64_t size = file.size();
  std::string start(std::min<uint64_t>(size, 512), '\0');
  file.read(start.data(), start.size(), 0);
  const std::string what = fmt::format("'{}'", file.path().string());
  const uint64_t header_bytes = safetensors_header_bytes(start, size, what);
  start.resize(header_bytes);
  file.read(start.data(), header_bytes, 0);
  return parse_safetensors_header(start, size, what);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(File::open_read(path)), header_(read_header(file_)) {
  for (size_t i = 0; i < header_.entries.size(); ++i) index_.emplace(header_.entries[i].name, i);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &header_.entries[at->second];
}

void SafetensorsFile::read(const SafetensorsEntry& entry, int64_t first, int64_t count,
                           void* into) const {
  expect(0 <= first && 0 <= count && first + count <= entry.elements(), "elements of the entry");
  const auto width = static_cast<uint64_t>(dtype_bytes(entry.dtype));
  file_.read(into, static_cast<uint64_t>(count) * width,
             entry.begin + static_cast<uint64_t>(first) * width);
}

void SafetensorsFile::read_floats(const SafetensorsEntry& entry, int64_t first,
                                  std::span<float> into) const {
  if (entry.dtype == DType::f32)
    return read(entry, first, static_cast<int64_t>(into.size()), into.data());
  const bool known =
      entry.dtype == DType::bf16 || entry.dtype == DType::f16 || entry.dtype == DType::f64;
  require(known, ErrorKind::data, "'{}': tensor '{}' has dtype {}, not a floating-point one",
          path().string(), entry.name, safetensors_dtype_name(entry.dtype));
  const int64_t chunk = std::min<int64_t>(chunk_elements, static_cast<int64_t>(into.size()));
  std::vector<char> stored(static_cast<size_t>(chunk * dtype_bytes(entry.dtype)));
  while (!into.empty()) {
    const std::span<float> part = into.first(std::min(into.size(), static_cast<size_t>(chunk)));
    read(entry, first, static_cast<int64_t>(part.size()), stored.data());
    if (entry.dtype == DType::bf16) widen<Bf16>(stored.data(), part);
    if (entry.dtype == DType::f16) widen<F16>(stored.data(), part);
    if (entry.dtype == DType::f64) widen<double>(stored.data(), part);
    first += static_cast<int64_t>(part.size());
    into = into.subspan(part.size());
  }
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<SafetensorsTensor> tensors,
                                     std::map<std::string, std::string> metadata)
    : file_(File::create(path)), tensors_(std::move(tensors)) {
  metadata.emplace("format", "pt");
  std::string text = "{\"__metadata__\":{";
  for (const auto& [key, value] : metadata)
    text +=
        fmt::format("{}{}:{}", text.back() == '{' ? "" : ",", json_quoted(key), json_quoted(value));
  text += "}";
  uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors_) {
    const uint64_t begin = offset;
    offset += static_cast<uint64_t>(tensor.shape.elements() * dtype_bytes(tensor.dtype));
    std::string shape = to_string(tensor.shape);
    std::erase(shape, ' ');
    text += fmt::format(R"(,{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                        json_quoted(tensor.name), safetensors_dtype_name(tensor.dtype), shape,
                        begin, offset);
    begins_.push_back(begin);
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  header_.assign(8, '\0');
  std::memcpy(header_.data(), &length, 8);
  header_ += text;
  for (uint64_t& begin : begins_) begin += header_.size();
  file_bytes_ = header_.size() + offset;
  file_.write(header_.data(), header_.size(), 0);
  written_bytes_ = header_.size();
}

void SafetensorsWriter::write(size_t tensor, int64_t first, const void* elements, int64_t count) {
  const SafetensorsTensor& target = tensors_.at(tensor);
  expect(0 <= first && 0 <= count && first + count <= target.shape.elements(),
         "elements of the listed tensor");
  const auto width = static_cast<uint64_t>(dtype_bytes(target.dtype));
  const uint64_t bytes = static_cast<uint64_t>(count) * width;
  file_.write(elements, bytes, begins_[tensor] + static_cast<uint64_t>(first) * width);
  written_bytes_ += bytes;
}

void SafetensorsWriter::write_floats(size_t tensor, int64_t first, std::span<const float> values) {
  const DType dtype = tensors_.at(tensor).dtype;
  expect(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16, "a float dtype");
  if (dtype == DType::f32)
    return write(tensor, first, values.data(), static_cast<int64_t>(values.size()));
  std::vector<char> stored;
  while (!values.empty()) {
    const auto part = values.first(std::min(values.size(), static_cast<size_t>(chunk_elements)));
    if (dtype == DType::bf16) narrow<Bf16>(part, stored);
    if (dtype == DType::f16) narrow<F16>(part, stored);
    write(tensor, first, stored.data(), static_cast<int64_t>(part.size()));
    first += static_cast<int64_t>(part.size());
    values = values.subspan(part.size());
  }
}

uint64_t SafetensorsWriter::finish() {
  expect(written_bytes_ == file_bytes_, "every listed element was written once");
  file_.sync();
  file_.close();
  return file_bytes_;
}

}  // namespace rankine
