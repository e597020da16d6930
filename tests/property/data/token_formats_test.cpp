#include "data/token_formats.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "support/token_files.h"

namespace rankine {
namespace {

uint64_t draw(uint64_t round, uint64_t purpose, uint64_t below) {
  return philox(random_key(17, "mutation"), round, purpose)[0] % below;
}

// Overwrites, inserts, cuts; often with numbers that sit at an edge.
std::string mutated(std::string file, uint64_t round) {
  const uint64_t changes = 1 + draw(round, 0, 4);
  for (uint64_t i = 0; i < changes && !file.empty(); ++i) {
    const uint64_t at = draw(round, 10 * i + 1, std::min<uint64_t>(file.size(), 160));
    constexpr uint64_t edges[] = {0,          1,          2,          8,          0x7f,
                                  0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 33, ~0ULL >> 1,
                                  1ULL << 63, ~0ULL,      ~0ULL / 12, ~0ULL / 8,  20240520};
    const uint64_t edge = edges[draw(round, 10 * i + 2, std::size(edges))];
    const uint64_t width = uint64_t{1} << draw(round, 10 * i + 3, 4);
    switch (draw(round, 10 * i + 4, 4)) {
      case 0:
        file.resize(draw(round, 10 * i + 5, file.size() + 8));
        break;
      case 1:
        file[at] = static_cast<char>(draw(round, 10 * i + 5, 256));
        break;
      default:
        if (at + width <= file.size()) std::memcpy(file.data() + at, &edge, width);
    }
  }
  return file;
}

// Whatever a file says, its runs lie within it; the only other outcome is Error{data}.
template <class Read>
bool reads_within(uint64_t bytes, Read&& read) {
  try {
    const TokenRuns runs = read();
    for (const TokenRun& run : runs.runs) {
      EXPECT_GT(run.count, 0U);
      EXPECT_LE(run.offset, bytes);
      EXPECT_LE(run.count, (bytes - run.offset) / static_cast<uint64_t>(runs.width));
    }
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    return false;
  }
}

FileBytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(TokenFormats, MutatedFilesAreReadWithinOrRefused) {
  const std::string llmc =
      test::llmc_header(20240520, 1, 20) + test::raw_tokens<uint16_t>(std::vector<uint32_t>(20, 1));
  const std::string index = test::megatron_index(
      {.lengths = {3, 2, 0, 4}, .pointers = {0, 6, 10, 10}, .documents = {0, 1, 3, 4}});
  int good = 0, bad = 0;
  for (uint64_t round = 0; round < 20000; ++round) {
    SCOPED_TRACE(fmt::format("seed 17, round {}", round));
    const std::string a = mutated(llmc, round), b = mutated(index, round);
    (reads_within(a.size(), [&] { return read_llmc(bytes_of(a), "a"); }) ? good : bad) += 1;
    (reads_within(18, [&] { return read_megatron_index(bytes_of(b), 18, "b"); }) ? good : bad) += 1;
    if (HasFailure()) return;
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 10000);
}

}  // namespace
}  // namespace rankine
