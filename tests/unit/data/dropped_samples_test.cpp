#include <gtest/gtest.h>

#include "data/corpus.h"
#include "data/token_file.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// Samples of which nothing would be learned.
namespace rankine {
namespace {

using test::error_of;
using test::message_of;
using Tokens = std::vector<int32_t>;

constexpr uint32_t b = sample_begin, t = sample_target;

// A token file of samples, as whoever makes them may make them.
TokenData samples(const test::TemporaryFolder& folder, const std::vector<uint32_t>& tokens) {
  const TextTokenizer tokenizer = TextTokenizer::bytes();
  TokenFileWriter writer(folder / "samples");
  writer.append({reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(uint32_t)});
  writer.finish({.width = TokenWidth::u32,
                 .vocabulary = 257,
                 .tokenizer_hash = tokenizer.bpe().hash(),
                 .tokens = tokens.size(),
                 .documents = 1,
                 .end_token = -1,
                 .samples = true,
                 .tokenizer_json = tokenizer.file("tokenizer.json"),
                 .tokenizer_config = tokenizer.file("tokenizer_config.json"),
                 .notes = ""});
  return TokenData::open({{folder / "samples", DataFormat::tokens}});
}

std::pair<Tokens, Tokens> window(const Corpus& corpus, uint64_t number) {
  Tokens inputs(corpus.seq_length(), 99), targets(corpus.seq_length(), 99);
  corpus.fill(number, {inputs.data(), targets.data()});
  return {inputs, targets};
}

TEST(DroppedSamples, OthersArePackedAsIfTheyWereNotThere) {
  const test::TemporaryFolder folder;
  const Corpus corpus(
      samples(folder,
              {
                  1 | b,     2,     3,     4, 5,     6 | t,        // reply behind 4 places
                  1 | b,     2 | t,                                // kept
                  7 | b,     8,     9,                             // no reply
                  3 | b,     4 | t, 5 | t,                         // kept, same window
                  1 | b,                                           // nothing to predict
                  6 | b | t, 7,     8,     9, 1 | t,               // its reply fits, at the end
                  1 | b,     1,     1,     1, 1,     1,     2 | t  // behind again
              }),
      4);
  ASSERT_EQ(corpus.windows(), 2U);
  EXPECT_EQ(window(corpus, 0), std::pair(Tokens({1, 3, 4, 0}), Tokens({2, 4, 5, -1})));
  EXPECT_EQ(window(corpus, 1), std::pair(Tokens({6, 7, 8, 9}), Tokens({-1, -1, -1, 1})));
  EXPECT_EQ(corpus.cut_samples(), 0U);
  const std::vector<std::string> warnings = corpus.warnings();
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_NE(warnings[0].find("2 of 7 samples are dropped: their replies begin behind --seq-length "
                             "4"),
            std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[0].find("a --seq-length of 6 keeps all"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("2 of 7 samples are dropped: no token of them is to be learned"),
            std::string::npos)
      << warnings[1];
}

TEST(DroppedSamples, EveryWindowHasATargetAndThoseKeptKeepTheirPlaces) {
  const test::TemporaryFolder folder;
  std::vector<uint32_t> all, kept;
  for (uint32_t i = 0; i < 400; ++i) {
    const uint32_t prompt = 1 + i * 7919 % 30, reply = i * 104729 % 9;
    std::vector<uint32_t> sample;
    for (uint32_t k = 0; k < prompt; ++k) sample.push_back(k % 250);
    for (uint32_t k = 0; k < reply; ++k) sample.push_back(k | t);
    sample.front() |= b;
    all.insert(all.end(), sample.begin(), sample.end());
    if (reply > 0 && prompt <= 16) kept.insert(kept.end(), sample.begin(), sample.end());
  }
  const Corpus some(samples(folder, all), 16);
  const test::TemporaryFolder other;
  const Corpus clean(samples(other, kept), 16);
  ASSERT_EQ(some.windows(), clean.windows());
  EXPECT_TRUE(clean.warnings().empty() || clean.warnings().size() == 1);  // cut ones at most
  for (uint64_t w = 0; w < some.windows(); ++w) {
    const auto got = window(some, w);
    EXPECT_EQ(got, window(clean, w)) << w;
    EXPECT_TRUE(std::ranges::any_of(got.second, [](int32_t target) { return target >= 0; })) << w;
  }
}

TEST(DroppedSamples, NoneLeftIsAnErrorWithTheLengthThatIsNeeded) {
  const test::TemporaryFolder folder;
  const auto behind = [&](uint64_t seq_length) {
    return Corpus(samples(folder, {1 | b, 2, 3, 4 | t, 1 | b, 2, 3, 4, 5, 6 | t}), seq_length);
  };
  const Error error = error_of([&] { behind(2); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.what(), "none of the 2 samples of '" + (folder / "samples").string() +
                              "' has a token to learn within --seq-length 2: their replies begin "
                              "behind it; give a --seq-length of at least 3, or 5 for all of them");
  std::filesystem::remove(folder / "samples");
  EXPECT_NO_THROW(behind(3));
  const test::TemporaryFolder other;
  EXPECT_NE(message_of([&] {
              Corpus(samples(other, {1 | b, 2, 3, 4 | b | t, 5}), 64);
            }).find("give samples with replies"),
            std::string::npos);
}

}  // namespace
}  // namespace rankine
