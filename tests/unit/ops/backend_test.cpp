#include "ops/backend.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace rankine {
namespace {

TEST(Backend, IsTheProcessorWhereNothingElseIs) {
  const Backend backend = make_backend({.threads = 1});
  EXPECT_EQ(&backend.host(), backend.ops.get());
  EXPECT_TRUE(backend.device().is_host());
}

TEST(Backend, OtherNamesAreRefusedWithWhatThereIs) {
  try {
    make_backend({.device = "gpu"});
    FAIL() << "a device that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("there is cpu"), std::string::npos);
  }
}

}  // namespace
}  // namespace rankine
