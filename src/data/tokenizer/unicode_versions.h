#pragma once
#include <cstdint>

// Versions of Unicode that decide about ids. The Hugging Face tokenizers library, whose ids are the
// ones models are trained on, splits words by the classes of version 16 and composes (NFC) by those
// of version 9. utf8proc knows one version for both, whichever the system has.
namespace rankine {

enum class NewChar : uint8_t { none, letter, number, mark };

// What the versions 15.1 and 16 added; `none` for all other points.
NewChar added_after_unicode_15(uint32_t point);

// Whether composition by version 9 leaves this point as it is, where later ones reorder, compose or
// decompose it.
bool composes_after_unicode_9(uint32_t point);

}  // namespace rankine
