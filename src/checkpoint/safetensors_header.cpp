#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/lfs_pointer.h"
#include "checkpoint/json.h"
#include "checkpoint/safetensors.h"

namespace rankine {
namespace {

using nlohmann::json;

constexpr uint64_t max_header_bytes = 100'000'000;  // the official reader's limit
constexpr std::array<DType, 10> dtypes{DType::f64, DType::f32,    DType::bf16, DType::f16,
                                       DType::i64, DType::i32,    DType::i16,  DType::i8,
                                       DType::u8,  DType::boolean};

DType parse_dtype(const std::string& word, std::string_view what, const std::string& tensor) {
  for (const DType dtype : dtypes)
    if (safetensors_dtype_name(dtype) == word) return dtype;
  fail(ErrorKind::data,
       "{}: tensor '{}' has dtype '{}', which is not supported; convert it to F32, BF16 or F16",
       what, tensor, word);
}

// What files that are often met under the name look like.
std::string_view guess_content(std::string_view start) {
  if (is_lfs_pointer(start)) return lfs_pointer_text;
  if (start.starts_with("PK\x03\x04"))
    return "a PyTorch zip archive (pytorch_model.bin); convert it to safetensors first";
  if (start.size() > 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5 && start[2] != 0)
    return "a Python pickle (an old PyTorch file); convert it to safetensors first";
  const size_t text = start.find_first_not_of(" \t\r\n");
  if (text != std::string_view::npos && start[text] == '<')
    return "an HTML or XML page, probably a download that failed";
  if (text != std::string_view::npos && start[text] == '{')
    return "a JSON text without the length in front";
  return "";
}

// Builds entries while the JSON is read: hostile headers never become a tree in memory.
class HeaderReader final : public json::json_sax_t {
 public:
  HeaderReader(std::string_view what, SafetensorsHeader& out) : what_(what), out_(out) {}

  bool null() override { unexpected("null"); }
  bool boolean(bool /*value*/) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    refuse(fmt::format("tensor '{}' has the negative number {} in '{}'", name_, value, field_));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::numbers) unexpected(std::to_string(value));
    std::vector<uint64_t>& list = field_ == "shape" ? shape_ : offsets_;
    if (&list == &offsets_ && list.size() == 2)
      refuse(fmt::format("tensor '{}' has more than two data_offsets", name_));
    list.push_back(value);
    return true;
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override { unexpected(text); }
  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      out_.metadata[field_] = value;
    } else if (place_ == Place::entry && field_ == "dtype") {
      dtype_ = value;
    } else {
      unexpected("a string");
    }
    return true;
  }
  bool binary(binary_t& /*value*/) override { unexpected("binary data"); }
  bool start_object(size_t /*count*/) override {
    switch (place_) {
      case Place::outside:
        place_ = Place::file;
        return true;
      case Place::file:
        place_ = name_ == "__metadata__" ? Place::metadata : Place::entry;
        fields_.clear();
        dtype_.clear();
        shape_.clear();
        offsets_.clear();
        return true;
      default:
        unexpected("an object");
    }
  }
  bool key(string_t& value) override {
    if (place_ == Place::file) {
      if (!names_.insert(value).second) refuse(fmt::format("tensor '{}' is listed twice", value));
      name_ = value;
      return true;
    }
    if (place_ == Place::entry && value != "dtype" && value != "shape" && value != "data_offsets")
      refuse(fmt::format("tensor '{}' has the unknown field '{}'", name_, value));
    if (!fields_.insert(value).second)
      refuse(fmt::format("field '{}' of '{}' occurs twice", value, name_));
    field_ = value;
    return true;
  }
  bool end_object() override {
    if (place_ == Place::entry) finish_entry();
    place_ = place_ == Place::file ? Place::outside : Place::file;
    return true;
  }
  bool start_array(size_t /*count*/) override {
    if (place_ != Place::entry || field_ == "dtype") unexpected("an array");
    place_ = Place::numbers;
    return true;
  }
  bool end_array() override {
    place_ = Place::entry;
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& fault) override {
    refuse(fmt::format("the header is not valid JSON at byte {}: {}", position + 8, fault.what()));
  }

 private:
  enum class Place { outside, file, metadata, entry, numbers };

  [[noreturn]] void refuse(const std::string& fault) const {
    fail(ErrorKind::data, "{}: {}", what_, fault);
  }
  [[noreturn]] void unexpected(std::string_view value) const {
    if (place_ == Place::outside) refuse("the header is not a JSON object");
    refuse(fmt::format("'{}' of '{}' in the header may not be {}", field_, name_, value));
  }

  void finish_entry() {
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (!fields_.contains(field)) refuse(fmt::format("tensor '{}' lacks '{}'", name_, field));
    if (offsets_.size() != 2)
      refuse(fmt::format("tensor '{}' needs two data_offsets, not {}", name_, offsets_.size()));
    SafetensorsEntry entry{name_, parse_dtype(dtype_, what_, name_), {}, offsets_[0], offsets_[1]};
    if (entry.begin > entry.end)
      refuse(fmt::format("tensor '{}' ends at offset {}, before it begins at {}", name_, entry.end,
                         entry.begin));
    entry.shape.reserve(shape_.size());
    auto bytes = static_cast<uint64_t>(dtype_bytes(entry.dtype));
    for (const uint64_t extent : shape_) {
      if (extent > INT64_MAX || __builtin_mul_overflow(bytes, extent, &bytes))
        refuse(fmt::format("the size of tensor '{}' overflows", name_));
      entry.shape.push_back(static_cast<int64_t>(extent));
    }
    if (bytes != entry.end - entry.begin)
      refuse(fmt::format("tensor '{}' needs {} bytes by dtype and shape, but its range has {}",
                         name_, bytes, entry.end - entry.begin));
    out_.entries.push_back(std::move(entry));
  }

  std::string what_;
  SafetensorsHeader& out_;
  Place place_ = Place::outside;
  std::string name_, field_, dtype_;
  std::vector<uint64_t> shape_, offsets_;
  std::set<std::string> names_, fields_;
};

}  // namespace

std::string_view safetensors_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "F64";
    case DType::f32:
      return "F32";
    case DType::bf16:
      return "BF16";
    case DType::f16:
      return "F16";
    case DType::i64:
      return "I64";
    case DType::i32:
      return "I32";
    case DType::i16:
      return "I16";
    case DType::i8:
      return "I8";
    case DType::u8:
      return "U8";
    case DType::boolean:
      return "BOOL";
  }
  return "?";
}

uint64_t safetensors_header_bytes(std::string_view start, uint64_t file_bytes,
                                  std::string_view what) {
  require(file_bytes > 0, ErrorKind::data, "{} is empty (0 bytes)", what);
  if (start.size() < 9 || start[8] != '{') {
    const std::string_view guess = guess_content(start);
    require(guess.empty(), ErrorKind::data, "{} is not a safetensors file: it is {}", what, guess);
  }
  require(file_bytes >= 8 && start.size() >= 8, ErrorKind::data,
          "{} has {} bytes, too few for the 8 bytes of a safetensors header length", what,
          file_bytes);
  uint64_t length = 0;
  std::memcpy(&length, start.data(), 8);
  require(length <= max_header_bytes, ErrorKind::data,
          "{}: a header of {} bytes is more than the {} allowed; this is no safetensors file", what,
          length, max_header_bytes);
  require(length <= file_bytes - 8, ErrorKind::data,
          "{}: the header of {} bytes does not fit the file of {} bytes; was the download cut off?",
          what, length, file_bytes);
  require(length >= 2 && (start.size() < 9 || start[8] == '{'), ErrorKind::data,
          "{}: the header is not a JSON object", what);
  return length + 8;
}

SafetensorsHeader parse_safetensors_header(std::string_view start, uint64_t file_bytes,
                                           std::string_view what) {
  const uint64_t header_bytes = safetensors_header_bytes(start, file_bytes, what);
  expect(start.size() >= header_bytes, "the whole header is given");
  const std::string_view text = start.substr(8, header_bytes - 8);
  require(text.find('\0') == std::string_view::npos, ErrorKind::data,
          "{}: NUL byte in the header at byte {}", what, text.find('\0') + 8);
  SafetensorsHeader header;
  HeaderReader reader(what, header);
  json::sax_parse(text.begin(), text.end(), &reader);

  const auto order = [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  };
  std::stable_sort(header.entries.begin(), header.entries.end(), order);
  const uint64_t data_bytes = file_bytes - header_bytes;
  uint64_t filled = 0;
  for (SafetensorsEntry& entry : header.entries) {
    require(entry.begin >= filled, ErrorKind::data, "{}: tensor '{}' overlaps the one before it",
            what, entry.name);
    require(entry.begin == filled, ErrorKind::data, "{}: {} unused bytes before tensor '{}'", what,
            entry.begin - filled, entry.name);
    require(entry.end <= data_bytes, ErrorKind::data,
            "{}: tensor '{}' ends {} bytes past the end of the file; was the download cut off?",
            what, entry.name, entry.end - data_bytes);
    filled = entry.end;
    entry.begin += header_bytes;
    entry.end += header_bytes;
  }
  require(filled == data_bytes, ErrorKind::data, "{}: {} bytes too many at the end of the file",
          what, data_bytes - filled);
  return header;
}

}  // namespace rankine
