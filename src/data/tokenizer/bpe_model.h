#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/tokenizer/pair_table.h"

// Byte-pair encoding of one word: its characters, or bytes, are joined pair by pair, the pair of
// the lowest rank first and of two equal ones the left.
namespace rankine {

using TokenIds = std::vector<int32_t>;

struct BpeModelParts {
  std::vector<std::string> tokens;  // by id, as bytes of text; "" where there is none
  std::vector<std::pair<std::pair<int32_t, int32_t>, int32_t>> merges;  // by rank: pair, result
  bool by_bytes = true;       // words begin as bytes, else as UTF-8 characters
  bool whole_words = false;   // a word that is a token is that token, whatever the merges say
  bool fuse_unknown = false;  // neighbouring unknown characters are one unknown token
  int32_t unknown = -1;       // the token of characters that are none
  std::vector<int32_t> byte_tokens;  // what an unknown character's bytes become, or empty
  std::unordered_map<std::string, int32_t> ids;  // of tokens that words can become
};

class BpeModel {
 public:
  // Working space of encode; one for each thread.
  struct Scratch {
    TokenIds ids;
    std::vector<uint32_t> ranks;
    std::vector<int32_t> next, previous;
    struct Candidate {
      uint32_t rank;
      int32_t at, left, right;
    };
    std::vector<Candidate> heap;
  };

  // With by_bytes all 256 bytes must be tokens; without, there must be `unknown` or `byte_tokens`.
  explicit BpeModel(BpeModelParts parts);

  // Appends the word's ids. Time grows with n log n, n being the word's length.
  void encode(std::string_view word, Scratch& scratch, TokenIds& out) const;
  const std::vector<std::string>& tokens() const { return parts_.tokens; }
  bool by_bytes() const { return parts_.by_bytes; }
  // Whether no token has `mark` after anything but `mark`, so that a cut there changes no ids.
  bool can_cut_before(std::string_view mark) const;

 private:
  void start(std::string_view word, TokenIds& ids) const;
  void start_chars(std::string_view word, TokenIds& ids) const;
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  BpeModelParts parts_;
  PairTable merges_;
  std::vector<int32_t> of_byte_;
};

}  // namespace rankine
