#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/json_place.h"
#include "data/tokenizer/piece_start.h"
#include "data/tokenizer/split_pattern.h"

// How text is cut into words, which merges never cross.
namespace rankine {

struct SplitStep {
  enum class Kind {
    pattern,        // words of a known expression
    digit_runs,     // numbers apart from the rest
    single_digits,  // each digit of a number apart
    alone,          // `mark` apart from what surrounds it
    after_mark,     // a cut after each `mark`
    before_mark,    // a cut before each `mark`
    before_marks,   // a cut before each run of `mark`
    prefix_space,   // a space in front of text that begins with none
    metaspace       // spaces become `mark`, which also goes in front
  } kind;
  SplitPattern pattern = SplitPattern::gpt2;
  std::string mark;
  enum class Prefix { never, first, always } prefix = Prefix::never;  // of metaspace
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  // The "pre_tokenizer" of tokenizer.json: null, ByteLevel, Split of a known expression or of a
  // string, Digits, Metaspace, or a sequence.
  explicit PreTokenizer(const JsonPlace& place);

  bool by_bytes() const { return by_bytes_; }  // ByteLevel is among them
  bool adds_text() const;                      // spaces or marks that were not there
  // Whether a mark goes in front of the first of several pieces.
  bool marks_first_piece() const;
  // Whether every word ends where a letter or digit is followed by a line end, and what stands
  // before and after has no influence on the words of the other side.
  bool cuts_before_lines() const;
  void add(SplitStep step) { steps_.push_back(std::move(step)); }

  // Calls on_word(word) from left to right; the words are not empty and live until the call ends.
  template <class OnWord>
  void split(std::string_view piece, PieceStart start, OnWord&& on_word) const {
    split_from(0, piece, start, on_word);
  }

 private:
  template <class OnWord>
  void split_from(size_t index, std::string_view piece, PieceStart start, OnWord& on_word) const {
    if (piece.empty()) return;
    if (index == steps_.size()) return on_word(piece);
    const SplitStep& step = steps_[index];
    if (step.kind >= SplitStep::Kind::prefix_space)
      return split_from(index + 1, prefixed(step, piece, start), start, on_word);
    for (size_t at = 0; at < piece.size();) {
      const size_t bytes = piece_bytes(step, piece, at);
      split_from(index + 1, piece.substr(at, bytes), at == 0 ? start : PieceStart::later, on_word);
      at += bytes;
    }
  }
  static size_t piece_bytes(const SplitStep& step, std::string_view text, size_t at) {
    return step.kind == SplitStep::Kind::pattern ? word_bytes(step.pattern, text, at)
                                                 : other_piece_bytes(step, text, at);
  }
  static size_t other_piece_bytes(const SplitStep& step, std::string_view text, size_t at);
  static std::string prefixed(const SplitStep& step, std::string_view piece, PieceStart start);
  void read(const JsonPlace& place);
  void read_byte_level(JsonMembers& members);
  void read_split(JsonMembers& members);
  void read_metaspace(JsonMembers& members);

  std::vector<SplitStep> steps_;
  bool by_bytes_ = false;
};

}  // namespace rankine
