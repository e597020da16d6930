#include "checkpoint/safetensors.h"

#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using test::message_of;
using test::TemporaryFolder;

std::string with_length(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + header + data;
}

std::string refusal(const std::string& bytes) {
  return message_of([&] { parse_safetensors_header(bytes, bytes.size(), "f"); });
}

std::string header_refusal(const std::string& header, size_t data_bytes = 8) {
  return refusal(with_length(header, std::string(data_bytes, 'x')));
}

TEST(Safetensors, WritesWhatItReads) {
  const TemporaryFolder folder;
  const std::vector<float> values{1.0f, -2.5f, 0x1p-3f, 1e30f, 0.0f, 3.0f};
  SafetensorsWriter writer(folder / "a.safetensors",
                           {{"m \"quoted\"", DType::f32, {2, 3}},
                            {"half", DType::bf16, {6}},
                            {"scalar", DType::f32, {}},
                            {"none", DType::f32, {0, 4}}},
                           {{"step", "3"}});
  writer.write_floats(2, 0, std::vector<float>{7.0f});
  writer.write_floats(0, 3, std::span(values).subspan(3));
  writer.write_floats(0, 0, std::span(values).first(3));
  writer.write_floats(1, 0, values);
  EXPECT_EQ(writer.header().size() % 8, 0u);
  const uint64_t bytes = writer.finish();
  EXPECT_EQ(bytes, std::filesystem::file_size(folder / "a.safetensors"));

  const SafetensorsFile file(folder / "a.safetensors");
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}, {"step", "3"}}));
  ASSERT_EQ(file.entries().size(), 4u);
  const SafetensorsEntry* entry = file.find("m \"quoted\"");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->shape, (std::vector<int64_t>{2, 3}));
  std::vector<float> read(4);
  file.read_floats(*entry, 2, read);
  EXPECT_EQ(read, std::vector<float>(values.begin() + 2, values.end()));
  std::vector<float> rounded(6);
  file.read_floats(*file.find("half"), 0, rounded);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(rounded[i], to_float(from_float<Bf16>(values[i])));
  EXPECT_EQ(file.find("scalar")->elements(), 1);
  EXPECT_EQ(file.find("none")->elements(), 0);
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST(Safetensors, MissingBytesAreABug) {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "a.safetensors", {{"m", DType::f32, {2}}});
  writer.write_floats(0, 0, std::vector<float>{7.0f});
  EXPECT_EQ(test::error_of([&] { writer.finish(); }).kind(), ErrorKind::internal);
}

TEST(Safetensors, WidensEveryFloatAndRefusesIntegers) {
  const TemporaryFolder folder;
  const double wide = 0.1;
  const F16 half = from_float<F16>(0.333f);
  const int32_t integer = 7;
  SafetensorsWriter writer(
      folder / "a.safetensors",
      {{"f64", DType::f64, {1}}, {"f16", DType::f16, {1}}, {"i32", DType::i32, {1}}});
  writer.write(0, 0, &wide, 1);
  writer.write(1, 0, &half, 1);
  writer.write(2, 0, &integer, 1);
  writer.finish();
  const SafetensorsFile file(folder / "a.safetensors");
  std::vector<float> out(1);
  file.read_floats(*file.find("f64"), 0, out);
  EXPECT_EQ(out[0], 0.1f);
  file.read_floats(*file.find("f16"), 0, out);
  EXPECT_EQ(out[0], to_float(half));
  EXPECT_NE(message_of([&] { file.read_floats(*file.find("i32"), 0, out); }).find("dtype I32"),
            std::string::npos);
}

TEST(Safetensors, KeepsAnyRankAndUnalignedData) {
  const std::string header =
      R"({"x":{"dtype":"F32","shape":[1,1,1,1,1,2],"data_offsets":[1,9]},"b":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})";
  const std::string bytes = with_length(header, std::string(9, 'x'));
  const SafetensorsHeader parsed = parse_safetensors_header(bytes, bytes.size(), "f");
  ASSERT_EQ(parsed.entries.size(), 2u);
  EXPECT_EQ(parsed.entries[0].name, "b");
  EXPECT_EQ(parsed.entries[1].shape.size(), 6u);
  EXPECT_EQ(parsed.entries[1].begin, 8 + header.size() + 1);
}

struct BadHeader {
  const char* header;
  const char* message;
};

constexpr BadHeader bad_headers[] = {
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
     "'a' is listed twice"},
    {R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", "dtype 'F8_E4M3'"},
    {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "negative number -2"},
    {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "may not be 2.0"},
    {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", "overflows"},
    {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", "overflows"},
    {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "needs 12 bytes"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "before it begins"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})", "more than two"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "needs two data_offsets"},
    {R"({"a":{"dtype":"F32","shape":[2]}})", "lacks 'data_offsets'"},
    {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "occurs twice"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", "unknown field 'more'"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "4 bytes too many"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "4 unused bytes"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     "'b' overlaps"},
    {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "4 bytes past the end"},
    {R"({"__metadata__":{"k":1}})", "may not be 1"},
    {R"({"__metadata__":"x"})", "may not be a string"},
    {R"({"a":[]})", "may not be an array"},
    {R"({"a":{"dtype":{},"shape":[2],"data_offsets":[0,8]}})", "may not be an object"},
    {R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", "may not be an array"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})", "not valid JSON"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}{})", "not valid JSON"},
};

TEST(Safetensors, RefusesBadHeadersByName) {
  for (const BadHeader& bad : bad_headers)
    EXPECT_NE(header_refusal(bad.header).find(bad.message), std::string::npos)
        << bad.header << "\ngives: " << header_refusal(bad.header);
}

TEST(Safetensors, SaysWhatOtherFilesLookLike) {
  EXPECT_NE(refusal("version https://git-lfs.github.com/spec/v1\noid").find("Git LFS pointer"),
            std::string::npos);
  EXPECT_NE(refusal("\n<!doctype html><html>").find("HTML"), std::string::npos);
  EXPECT_NE(refusal(std::string("PK\x03\x04\0\0\0\0\0\0", 10)).find("PyTorch zip"),
            std::string::npos);
  EXPECT_NE(refusal("\x80\x02\x8a\nl\xfc\x9c").find("pickle"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1}   ").find("without the length"), std::string::npos);
  EXPECT_NE(refusal("").find("empty"), std::string::npos);
  EXPECT_NE(refusal("abc").find("too few"), std::string::npos);
  EXPECT_NE(refusal(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)).find("more than the"),
            std::string::npos);
  EXPECT_NE(header_refusal(std::string("{}\0", 3), 0).find("NUL byte"), std::string::npos);
}

}  // namespace
}  // namespace rankine
