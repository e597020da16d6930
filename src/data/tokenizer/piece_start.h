#pragma once
#include <cstdint>

namespace rankine {

// Where a piece of text begins, which decides what a tokenizer puts in front of it.
enum class PieceStart : uint8_t {
  text,    // where the whole text begins
  later,   // behind an added token or another piece
  within,  // in the middle of a piece, whose beginning was encoded before: nothing is put there
};

}  // namespace rankine
