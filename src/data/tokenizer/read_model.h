#pragma once
#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/json_place.h"

// The "model" and the template of a tokenizer.json.
namespace rankine {

// `by_bytes`: tokens are spelled in GPT-2's printable bytes.
BpeModelParts read_model(const JsonPlace& place, bool by_bytes);
// Whether the vocabulary's token of this id is spelled like the added token.
bool same_token(const BpeModel& model, const AddedToken& token);

struct TemplateIds {
  TokenIds before, after;
};
// Of a TemplateProcessing, for one text.
TemplateIds read_template_ids(JsonMembers& members);

}  // namespace rankine
