#include "checkpoint/manifest.h"

#include "support/errors.h"

namespace rankine {
namespace {

using test::message_of;

Manifest example() {
  Manifest m;
  m.tensors = {{"weights/a", DType::f32, {4, 6}},
               {"weights/b", DType::bf16, {3}},
               {"scale", DType::f32, {}}};
  m.files = {{"rank-00000.safetensors",
              100,
              0x0123456789abcdef,
              {{"weights/a", {{0, 0}, {4, 2}}}, {"weights/b", {{0}, {3}}}, {"scale", {}}}},
             {"rank-00001.safetensors",
              80,
              5,
              {{"weights/a", {{0, 2}, {1, 6}}}, {"weights/a", {{1, 2}, {4, 6}}}}}};
  m.state = R"({"step":7})";
  return m;
}

std::string refusal_of(const Manifest& m) {
  return message_of([&] { check(m, "m"); });
}

TEST(Manifest, TextParsesBackEqual) {
  const Manifest m = example();
  EXPECT_EQ(parse_manifest(manifest_text(m), "m"), m);
  EXPECT_EQ(manifest_text(m), manifest_text(parse_manifest(manifest_text(m), "m")));
}

TEST(Manifest, PieceNamesTellPiecesOfOneTensorApart) {
  const Manifest m = example();
  EXPECT_EQ(piece_name(m.files[0].pieces[0], {4, 6}), "weights/a[0:4, 0:2]");
  EXPECT_EQ(piece_name(m.files[0].pieces[1], {3}), "weights/b");
  EXPECT_EQ(piece_name(m.files[0].pieces[2], {}), "scale");
}

TEST(Manifest, RefusesBoxesThatDoNotTile) {
  Manifest m = example();
  m.files[1].pieces.pop_back();
  EXPECT_EQ(refusal_of(m), "m: files hold 12 of the 24 elements of tensor 'weights/a'");
  m = example();
  m.files[1].pieces[0].box = {{0, 1}, {1, 6}};
  EXPECT_NE(refusal_of(m).find("overlap"), std::string::npos);
  m = example();
  m.files[1].pieces[0].box = {{0, 2}, {1, 7}};
  EXPECT_NE(refusal_of(m).find("does not lie in tensor 'weights/a'"), std::string::npos);
  m = example();
  m.files[1].pieces[0].box = {{0}, {1}};
  EXPECT_NE(refusal_of(m).find("does not lie"), std::string::npos);
  m = example();
  m.files[1].pieces.push_back({"scale", {}});
  EXPECT_NE(refusal_of(m).find("hold 2 of the 1 elements"), std::string::npos);
}

TEST(Manifest, RefusesBadNamesAndShapes) {
  Manifest m = example();
  m.tensors.push_back(m.tensors[0]);
  EXPECT_NE(refusal_of(m).find("'weights/a' is listed twice"), std::string::npos);
  m = example();
  m.files[0].pieces[0].tensor = "weights/c";
  EXPECT_NE(refusal_of(m).find("unlisted tensor 'weights/c'"), std::string::npos);
  for (const char* name : {"../rank.safetensors", "a/b", "", ".hidden", "a\\b"}) {
    m = example();
    m.files[0].name = name;
    EXPECT_NE(refusal_of(m).find("not a plain file name"), std::string::npos) << name;
  }
  m = example();
  m.tensors[0].shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_NE(refusal_of(m).find("impossible shape"), std::string::npos);
}

// The text as version 1 had it.
std::string unsealed(const Manifest& m) {
  std::string text = manifest_text(m);
  text = text.substr(0, text.rfind(",\n\"checksum\"")) + "\n}\n";
  return text.replace(text.find("\"version\":2"), 11, "\"version\":1");
}

TEST(Manifest, RefusesWrongText) {
  const std::string good = unsealed(example());
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return message_of([&] { parse_manifest(text, "m"); });
  };
  EXPECT_NE(refusal("\"version\":1", "\"version\":3").find("this program reads versions up to 2"),
            std::string::npos);
  EXPECT_NE(refusal("rankine-checkpoint", "other").find("not the manifest"), std::string::npos);
  EXPECT_NE(refusal("0123456789abcdef", "0123456789abcdeg").find("checksum"), std::string::npos);
  EXPECT_NE(refusal("\"bf16\"", "\"f8\"").find("unknown dtype 'f8'"), std::string::npos);
  EXPECT_NE(refusal("[4,6]", "[4,6,1,1,1]").find("5 dims"), std::string::npos);
  EXPECT_NE(refusal("[4,6]", "[4,-6]").find("-6"), std::string::npos);
  EXPECT_NE(refusal("{\"step\":7}", "[7]").find("'state' must be an object"), std::string::npos);
}

TEST(Manifest, IsCoveredByItsOwnChecksum) {
  const std::string good = manifest_text(example());
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"step\":7", "\"step\":8"},
                                 {"[4,6]", "[6,4]"},
                                 {"\"version\":2", "\"version\":1"},
                                 {"\"version\":2", "\"version\": 2"},
                                 {"\n}\n", "\n }\n"}}) {
    std::string text = good;
    text.replace(text.rfind(from), from.size(), to);
    EXPECT_NE(message_of([&] { parse_manifest(text, "m"); }).find("m is damaged"),
              std::string::npos)
        << from << " -> " << to;
  }
  EXPECT_TRUE(parse_manifest(good, "m").sealed);
  Manifest old = parse_manifest(unsealed(example()), "m");
  EXPECT_FALSE(old.sealed);
  old.sealed = true;
  EXPECT_EQ(old, example());
}

}  // namespace
}  // namespace rankine
