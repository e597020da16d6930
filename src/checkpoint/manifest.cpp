#include "checkpoint/manifest.h"

#include <array>
#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checksum.h"
#include "checkpoint/json.h"

namespace rankine {
namespace {

using nlohmann::json;

constexpr const char* format_name = "rankine-checkpoint";
constexpr int64_t format_version = 2, unsealed_version = 1;
constexpr std::string_view checksum_prefix = "xxh3-64:";

json dims_json(const Shape& shape) {
  return json(std::vector(shape.dims().begin(), shape.dims().end()));
}

Shape parse_dims(const JsonObject& object, const char* key) {
  const json& list = object.array(key);
  require(list.size() <= Shape::max_rank, ErrorKind::data,
          "{}: '{}' has {} dims, at most {} are supported", object.what(), key, list.size(),
          static_cast<int>(Shape::max_rank));
  std::vector<int64_t> dims;
  for (const json& extent : list)
    dims.push_back(json_integer(extent, fmt::format("{}: '{}'", object.what(), key), 0, INT64_MAX));
  return Shape(std::span<const int64_t>(dims));
}

DType parse_dtype(const JsonObject& object) {
  constexpr std::array known{DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64,
                             DType::i32, DType::i16, DType::i8,   DType::u8,  DType::boolean};
  const std::string& word = object.text("dtype");
  for (const DType dtype : known)
    if (dtype_name(dtype) == word) return dtype;
  fail(ErrorKind::data, "{}: unknown dtype '{}'", object.what(), word);
}

uint64_t parse_checksum(const JsonObject& object) {
  const std::string& text = object.text("checksum");
  uint64_t value = 0;
  bool ok = text.size() == checksum_prefix.size() + 16 && text.starts_with(checksum_prefix);
  if (ok) {
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data() + checksum_prefix.size(), end, value, 16);
    ok = result.ec == std::errc() && result.ptr == end;
  }
  require(ok, ErrorKind::data, "{}: checksum '{}' is not '{}' and 16 hexadecimal digits",
          object.what(), text, checksum_prefix);
  return value;
}

ManifestTensor parse_tensor(const json& value, std::string_view what) {
  const JsonObject object(value, fmt::format("{}: an entry of 'tensors'", what));
  ManifestTensor tensor{object.text("name"), DType::f32, {}};
  const JsonObject named(value, fmt::format("{}: tensor '{}'", what, tensor.name));
  tensor.dtype = parse_dtype(named);
  tensor.shape = parse_dims(named, "shape");
  return tensor;
}

ManifestFile parse_file(const json& value, std::string_view what) {
  const JsonObject object(value, fmt::format("{}: an entry of 'files'", what));
  ManifestFile file{object.text("name"), 0, 0, {}};
  const JsonObject named(value, fmt::format("{}: file '{}'", what, file.name));
  file.bytes = static_cast<uint64_t>(named.integer("bytes", 0, INT64_MAX));
  file.checksum = parse_checksum(named);
  for (const json& item : named.array("pieces")) {
    const JsonObject piece(item, fmt::format("{}: a piece", named.what()));
    file.pieces.push_back(
        {piece.text("tensor"), {parse_dims(piece, "begin"), parse_dims(piece, "end")}});
  }
  return file;
}

// One entry of a list a line: people read and compare manifests.
std::string lines(const std::vector<json>& items, const char* indent) {
  std::string out;
  for (const json& item : items)
    out += fmt::format("{}\n{}{}", out.empty() ? "" : ",", indent, item.dump());
  return out;
}

// What stands behind the text it covers.
std::string seal_of(std::string_view body) {
  Checksum checksum;
  checksum.update(body.data(), body.size());
  return fmt::format(",\n\"checksum\":\"{}{:016x}\"\n}}\n", checksum_prefix, checksum.value());
}

bool has_right_seal(std::string_view text) {
  const size_t bytes = seal_of("").size();
  return text.size() > bytes &&
         text.substr(text.size() - bytes) == seal_of(text.substr(0, text.size() - bytes));
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  std::vector<json> tensors;
  for (const ManifestTensor& t : manifest.tensors)
    tensors.push_back(
        {{"name", t.name}, {"dtype", dtype_name(t.dtype)}, {"shape", dims_json(t.shape)}});
  std::string files;
  for (const ManifestFile& file : manifest.files) {
    std::vector<json> pieces;
    for (const ManifestPiece& p : file.pieces)
      pieces.push_back(
          {{"tensor", p.tensor}, {"begin", dims_json(p.box.begin)}, {"end", dims_json(p.box.end)}});
    files +=
        fmt::format("{}\n  {{\"name\":{},\"bytes\":{},\"checksum\":\"{}{:016x}\",\"pieces\":[{}]}}",
                    files.empty() ? "" : ",", json_quoted(file.name), file.bytes, checksum_prefix,
                    file.checksum, lines(pieces, "    "));
  }
  const std::string body = fmt::format(
      "{{\n\"format\":\"{}\",\n\"version\":{},\n\"state\":{},\n\"tensors\":[{}],\n\"files\":[{}]",
      format_name, format_version, manifest.state, lines(tensors, "  "), files);
  return body + seal_of(body);
}

Manifest parse_manifest_part(std::string_view text, std::string_view what) {
  const json root = parse_json(text, what);
  const JsonObject object(root, what);
  require(object.text_or("format", "") == format_name, ErrorKind::data,
          "{} is not the manifest of a checkpoint: 'format' must be '{}'", what, format_name);
  const int64_t version = object.integer("version", unsealed_version, INT64_MAX);
  require(version <= format_version, ErrorKind::data,
          "{} has format version {}, this program reads versions up to {}", what, version,
          format_version);
  Manifest manifest;
  manifest.sealed = version != unsealed_version || object.find("checksum") != nullptr;
  require(!manifest.sealed || has_right_seal(text), ErrorKind::data,
          "{} is damaged: its checksum is not that of its text", what);
  for (const json& tensor : object.array("tensors"))
    manifest.tensors.push_back(parse_tensor(tensor, what));
  for (const json& file : object.array("files")) manifest.files.push_back(parse_file(file, what));
  const json& state = object.at("state");
  require(state.is_object(), ErrorKind::data, "{}: 'state' must be an object, not {}", what,
          json_excerpt(state));
  manifest.state = state.dump();
  return manifest;
}

Manifest parse_manifest(std::string_view text, std::string_view what) {
  Manifest manifest = parse_manifest_part(text, what);
  check(manifest, what);
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / manifest_name;
  require(is_there(path), ErrorKind::data, "'{}' is not a checkpoint: it has no {}",
          folder.string(), manifest_name);
  constexpr uint64_t most = uint64_t{1} << 28;
  return parse_manifest(read_text(path, most), fmt::format("'{}'", path.string()));
}

std::map<std::string, std::string> read_small_files(const std::filesystem::path& folder,
                                                    const Manifest& manifest) {
  std::map<std::string, std::string> out;
  for (const ManifestFile& file : manifest.files) {
    if (!file.pieces.empty()) continue;
    const std::filesystem::path path = folder / file.name;
    require(is_there(path), ErrorKind::data, "'{}' is missing; the manifest lists it",
            path.string());
    std::string text = read_text(path);
    Checksum checksum;
    checksum.update(text.data(), text.size());
    require(text.size() == file.bytes && checksum.value() == file.checksum, ErrorKind::data,
            "'{}' is damaged: it has {} bytes and the checksum {:016x}, the manifest says {} and "
            "{:016x}",
            path.string(), text.size(), checksum.value(), file.bytes, file.checksum);
    out.emplace(file.name, std::move(text));
  }
  return out;
}

std::string unsealed_warning(const std::filesystem::path& folder) {
  return fmt::format(
      "checkpoint '{}' is of version {}, whose {} and small files have no checksum: damage to them "
      "is not noticed",
      folder.string(), unsealed_version, manifest_name);
}

std::string piece_name(const ManifestPiece& piece, const Shape& shape) {
  return piece.box == whole(shape) ? piece.tensor : piece.tensor + to_string(piece.box);
}

}  // namespace rankine
