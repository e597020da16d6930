#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schedule/lifetimes.h"

// Memory of a pool that is held for part of a program.
namespace rankine::test {

inline bool share_time(const Stay& a, const Stay& b) {
  return a.first <= b.last && b.first <= a.last;
}

inline bool share_memory(const Stay& a, const Stay& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// No two stays have the same memory at the same time; `text` is for failures.
inline void expect_apart(const std::vector<Stay>& stays, const std::string& text) {
  for (const Stay& a : stays)
    for (const Stay& b : stays)
      ASSERT_FALSE(&a != &b && share_time(a, b) && share_memory(a, b)) << text;
}

}  // namespace rankine::test
