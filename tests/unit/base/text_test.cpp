#include "base/text.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/errors.h"

namespace rankine {
namespace {

TEST(Text, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(uint64_t{1} << 30), "1.00 GiB");
}

TEST(Text, Counts) {
  EXPECT_EQ(format_count(12), "12");
  EXPECT_EQ(format_count(124.4e6), "124 M");
  EXPECT_EQ(format_count(7.5e9), "7.50 B");
}

TEST(Text, Seconds) {
  EXPECT_EQ(format_seconds(3.21), "3.2 s");
  EXPECT_EQ(format_seconds(245), "4 min 05 s");
  EXPECT_EQ(format_seconds(7800), "2 h 10 min");
  EXPECT_EQ(format_seconds(-1), "?");
}

TEST(Text, ParsesSizes) {
  EXPECT_EQ(parse_bytes("4096", "x"), 4096U);
  EXPECT_EQ(parse_bytes("512 MiB", "x"), uint64_t{512} << 20);
  EXPECT_EQ(parse_bytes("1.5GB", "x"), 1500000000U);
  for (const char* text : {"", "GiB", "-1", "3 lightyears", "1e30", "nan", "inf"}) {
    const Error error = test::error_of([&] { parse_bytes(text, "--memory"); });
    EXPECT_EQ(error.kind(), ErrorKind::usage) << text;
    EXPECT_NE(std::string(error.what()).find("--memory"), std::string::npos) << text;
  }
}

TEST(Text, NearestName) {
  const std::vector<std::string> names{"steps", "seed", "tensor-parallel"};
  EXPECT_EQ(nearest_name("stpes", names), "steps");
  EXPECT_EQ(nearest_name("tensor-paralel", names), "tensor-parallel");
  EXPECT_EQ(nearest_name("vocabulary", names), "");
}

}  // namespace
}  // namespace rankine
