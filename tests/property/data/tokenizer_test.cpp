#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "data/byte_tokenizer.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/bpe_trainer.h"
#include "data/tokenizer/split_pattern.h"

namespace rankine {
namespace {

// Bytes drawn from `seed`: arbitrary ones, or pieces that meet the borders of all rules.
std::string random_text(uint64_t seed, bool arbitrary) {
  static const std::vector<std::string> pieces{"a",
                                               "B",
                                               "the",
                                               "ing",
                                               " ",
                                               "  ",
                                               "\n",
                                               "\r\n",
                                               "\t",
                                               "'s",
                                               "'LL",
                                               "1",
                                               "234",
                                               "!",
                                               "...",
                                               "'",
                                               "é",
                                               "e\u0301",
                                               "中文",
                                               "\u00a0",
                                               "\u3000",
                                               "\u2167",
                                               "😀",
                                               "\u200d",
                                               "\xff",
                                               "\xe4\xb8",
                                               "\xf0\x9f",
                                               "\u017f",
                                               "<|endoftext|>",
                                               "<",
                                               "\u0301",
                                               "\xed\xa0\x80",
                                               "zz",
                                               "ab",
                                               "aa"};
  const RandomKey key = random_key(seed, "text");
  const uint64_t length = philox(key, 0)[0] % 200;
  std::string text;
  for (uint64_t i = 1; i <= length; ++i) {
    const uint32_t draw = philox(key, i)[0];
    if (arbitrary)
      text += static_cast<char>(draw % 256);
    else
      text += pieces[draw % pieces.size()];
  }
  return text;
}

constexpr const char* sample =
    "the thing in the house is the thing that the man in the house said is the thing; abab abab "
    "abab aaaa aaaa zzzz zzzz 234 234 234 'tis 'tis\n\n\nthe end\n\n\nthe end é é é 中文 中文 中文";

BpeTokenizer trained(SplitPattern pattern) {
  BpeTrainer trainer(pattern);
  trainer.add(sample);
  return BpeTokenizer::parse(trainer.train(300), "trained");
}

// The definition, in the plainest words: join the leftmost of the lowest-ranked pairs, again.
TokenIds merged_by_definition(const BpeTokenizer& tokenizer, std::string_view word) {
  std::vector<std::string> parts;
  for (const char byte : word) parts.emplace_back(1, byte);
  static std::map<uint64_t, std::map<std::string, int32_t>> known;
  auto& ids = known[tokenizer.hash()];
  if (ids.empty())
    for (int32_t id = 0; id < tokenizer.vocabulary() - 1; ++id) ids[tokenizer.decode({id})] = id;
  // A trained vocabulary numbers its tokens in the order of merges.
  for (;;) {
    size_t best = parts.size();
    int32_t lowest = INT32_MAX;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto at = ids.find(parts[i] + parts[i + 1]);
      if (at == ids.end() || at->second >= lowest) continue;
      best = i;
      lowest = at->second;
    }
    if (best == parts.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  TokenIds out;
  for (const std::string& part : parts) out.push_back(ids.at(part));
  return out;
}

class EveryPattern : public testing::TestWithParam<SplitPattern> {};

TEST_P(EveryPattern, DecodeGivesBackAnyBytes) {
  const BpeTokenizer tokenizer = trained(GetParam());
  ASSERT_TRUE(tokenizer.keeps_text());
  Encoder encoder(tokenizer);
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const std::string text = random_text(seed, seed % 2 == 0);
    TokenIds ids;
    encoder.encode(text, {}, ids);
    ASSERT_EQ(tokenizer.decode(ids), text) << "seed " << seed;
    ASSERT_EQ(ids, tokenizer.encode(text)) << "a memory of words changes ids, seed " << seed;
    for (const int32_t id : ids) ASSERT_TRUE(tokenizer.is_token(id)) << "seed " << seed;
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, {.parse_special = true})), text)
        << "seed " << seed;
  }
}

TEST_P(EveryPattern, WordsTileTheTextAndDoNotDependOnWhatLiesBefore) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const std::string text = random_text(seed, seed % 2 == 0),
                      before = random_text(seed + 1, false);
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = word_bytes(GetParam(), text, at);
      ASSERT_GT(bytes, 0U) << "seed " << seed << " at " << at;
      ASSERT_LE(at + bytes, text.size()) << "seed " << seed << " at " << at;
      ASSERT_EQ(word_bytes(GetParam(), before + text.substr(at), before.size()), bytes)
          << "seed " << seed << " at " << at;
      at += bytes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, EveryPattern,
                         testing::Values(SplitPattern::gpt2, SplitPattern::llama3,
                                         SplitPattern::qwen));

TEST(StreamDecoder, GivesWholeCharactersAndAllOfTheText) {
  const BpeTokenizer tokenizer = trained(SplitPattern::gpt2);
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const std::string text = random_text(seed, false);
    StreamDecoder decoder(tokenizer);
    std::string all;
    for (const int32_t id : tokenizer.encode(text)) {
      all += decoder.push(id);
      ASSERT_TRUE(text.starts_with(all)) << "seed " << seed;
      const bool within =
          all.size() < text.size() && (text[all.size()] & 0xC0) == 0x80 && !all.empty() &&
          (all.back() & 0x80) != 0 && text.find("\xff") == std::string::npos &&
          text.find("\xe4\xb8") == std::string::npos &&
          text.find("\xf0\x9f") == std::string::npos && text.find("\xed\xa0") == std::string::npos;
      ASSERT_FALSE(within) << "seed " << seed << " cut after byte " << all.size();
    }
    ASSERT_EQ(all + decoder.finish(), text) << "seed " << seed;
  }
}

// Words on both sides of the length at which another algorithm takes over.
TEST(Merges, AreThoseOfTheDefinition) {
  const BpeTokenizer tokenizer = BpeTokenizer::parse(
      [] {
        BpeTrainer trainer(SplitPattern::gpt2);
        trainer.add("abababab abba abbaab bbaabb aaaab bbba abab baba aabb bbaa aaa bbb");
        return trainer.train(280);
      }(),
      "trained");
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RandomKey key = random_key(seed, "word");
    std::string word;
    for (uint64_t i = 0; i < 2 * seed / 3 + 1; ++i) word += philox(key, i)[0] % 2 == 0 ? 'a' : 'b';
    ASSERT_EQ(tokenizer.encode(word), merged_by_definition(tokenizer, word)) << "seed " << seed;
  }
}

TEST(ByteTokenizerFile, GivesByteValues) {
  const BpeTokenizer tokenizer = BpeTokenizer::parse(
      byte_tokenizer_json(), "bytes", {.config = byte_tokenizer_config_json(), .map = ""});
  EXPECT_EQ(tokenizer.vocabulary(), 257);
  EXPECT_EQ(tokenizer.special().end, 256);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = random_text(seed, true);
    TokenIds bytes;
    for (const char byte : text) bytes.push_back(static_cast<uint8_t>(byte));
    ASSERT_EQ(tokenizer.encode(text), bytes) << "seed " << seed;
    ASSERT_EQ(tokenizer.decode(bytes), text) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rankine
