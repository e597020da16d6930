#include <set>

#include "base/file.h"
#include "checkpoint/json.h"
#include "checkpoint/safetensors.h"
#include "golden_models.h"
#include "support/errors.h"

namespace rankine {
namespace {

// Every malformed file is refused, each with words of its own.
TEST(Golden, MalformedSafetensorsAreRefused) {
  const std::filesystem::path folder = test::golden_folder() / "edge" / "bad";
  if (!std::filesystem::exists(folder / "expect.json"))
    GTEST_SKIP() << "no " << folder << "; set RANKINE_GOLDEN";
  const nlohmann::json cases = parse_json(read_text(folder / "expect.json"), "expect.json");
  std::set<std::string> messages;
  for (const auto& [name, expected] : cases.items()) {
    const std::filesystem::path file = folder / (name + ".safetensors");
    const Error error = test::error_of([&] { SafetensorsFile{file}; });
    EXPECT_EQ(error.kind(), ErrorKind::data) << name;
    std::string message = error.what();
    EXPECT_NE(message.find(file.string()), std::string::npos) << message;
    message.erase(message.find(file.string()), file.string().size());
    EXPECT_TRUE(messages.insert(message).second) << name << " is told like another: " << message;
    RecordProperty(name, message);
  }
  EXPECT_GE(messages.size(), 15u);
}

}  // namespace
}  // namespace rankine
