#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/json_place.h"
#include "data/tokenizer/piece_start.h"

// What happens to text before it is cut into words.
namespace rankine {

class Normalizer {
 public:
  Normalizer() = default;
  // The "normalizer" of tokenizer.json: null, NFC, Prepend, Replace of a string, or a sequence.
  explicit Normalizer(const JsonPlace& place);

  // Whether nothing ever changes.
  bool empty() const { return steps_.empty(); }
  // Whether it puts something in front of text.
  bool prepends() const;
  // Whether text on both sides of a line end is changed as if the other were not there.
  bool keeps_line_ends() const;
  // `text` itself or a view of one of the buffers.
  std::string_view apply(std::string_view text, std::string (&buffers)[2],
                         PieceStart start = PieceStart::text) const;

 private:
  struct Step {
    enum class Kind { compose, prepend, replace } kind;
    std::string pattern, content;
  };
  void add(const JsonPlace& place);
  static std::string_view apply(const Step& step, std::string_view text, std::string& buffer);

  std::vector<Step> steps_;
};

// `text` with every `pattern`, from the left, replaced; `text` itself when there is none.
std::string_view replace_all(std::string_view text, std::string_view pattern,
                             std::string_view content, std::string& buffer);
// The string of {"String": ...}; other patterns are refused.
std::string string_pattern(const JsonPlace& place);

}  // namespace rankine
