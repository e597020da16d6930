#include "data/tokenizer/read_model.h"

#include <algorithm>

#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/text_decoder.h"

namespace rankine {
namespace {

using nlohmann::json;
using Ids = std::unordered_map<std::string, int32_t>;

// From tokens as they are spelled in the file to ids.
Ids read_vocabulary(const JsonPlace& place) {
  const json& vocabulary = place.value();
  place.need(vocabulary.is_object() && !vocabulary.empty(),
             "must be an object from tokens to ids, not {}", place.excerpt());
  const auto most = static_cast<int64_t>(2 * vocabulary.size() + 65536);
  Ids ids;
  ids.reserve(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    if (token.empty() || !id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() >= most)
      place.child(id, token).refuse("a token must have text, and an id from 0 to {}, not {}",
                                    most - 1, place.child(id, token).excerpt());
    ids.emplace(token, id.get<int32_t>());
  }
  return ids;
}

// Both spellings, "a b" and ["a", "b"].
std::pair<std::string, std::string> read_merge(const JsonPlace& list, size_t index) {
  const json& merge = list.value()[index];
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  const JsonPlace place = list.child(merge, index);
  place.need(merge.is_string(), "a merge must be \"a b\" or [\"a\", \"b\"], not {}",
             place.excerpt());
  const auto& text = merge.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  place.need(space != std::string::npos && text.find(' ', space + 1) == std::string::npos,
             "a merge must be two tokens with a space between them, not {}", place.excerpt());
  return {text.substr(0, space), text.substr(space + 1)};
}

void read_merges(const JsonPlace& place, const Ids& ids, BpeModelParts& parts) {
  const json& list = place.array();
  parts.merges.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const auto [left, right] = read_merge(place, i);
    const auto id = [&](const std::string& token) {
      const auto at = ids.find(token);
      if (at == ids.end())
        place.child(list[i], i).refuse("'{}' is no token of the vocabulary", token);
      return at->second;
    };
    parts.merges.push_back({{id(left), id(right)}, id(left + right)});
  }
}

// Fills tokens and ids, and finds the tokens of single bytes.
void place_tokens(const JsonPlace& place, const Ids& spelled, BpeModelParts& parts) {
  int32_t largest = 0;
  for (const auto& [token, id] : spelled) largest = std::max(largest, id);
  parts.tokens.resize(static_cast<size_t>(largest) + 1);
  for (const auto& [token, id] : spelled) {
    std::string& text = parts.tokens[static_cast<size_t>(id)];
    place.need(text.empty(), "two tokens have the id {}; one is '{}'", id, token);
    const auto bytes = parts.by_bytes ? from_printable(token) : std::nullopt;
    text = bytes.value_or(token);
    // A token that is spelled otherwise is met as an added token only.
    if (!parts.by_bytes || bytes) parts.ids.emplace(text, id);
  }
  for (int byte = 0; parts.by_bytes && byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    place.need(parts.ids.contains(one), "lacks '{}', which stands for byte {}", to_printable(one),
               byte);
  }
}

void read_unknown(JsonMembers& members, const Ids& ids, BpeModelParts& parts) {
  const std::string unknown = members.text_or("unk_token", "");
  if (!unknown.empty()) {
    const auto at = ids.find(unknown);
    members.place().need(at != ids.end(), "unk_token '{}' is no token of the vocabulary", unknown);
    parts.unknown = at->second;
  }
  parts.fuse_unknown = members.flag_or("fuse_unk", false);
  const bool fallback = members.flag_or("byte_fallback", false);
  if (parts.by_bytes) return;
  for (int byte = 0; fallback && byte < 256; ++byte) {
    const auto at = ids.find(fmt::format("<0x{:02X}>", byte));
    members.place().need(at != ids.end(),
                         "byte_fallback needs all of <0x00> to <0xFF>, 0x{:02X} "
                         "is not in the vocabulary",
                         byte);
    parts.byte_tokens.push_back(at->second);
  }
  members.place().need(fallback || parts.unknown >= 0,
                       "without unk_token and byte_fallback, text would be lost");
}

}  // namespace

BpeModelParts read_model(const JsonPlace& place, bool by_bytes) {
  JsonMembers members(place);
  const std::string type = members.text_or("type", "BPE");
  place.need(type == "BPE", "type '{}' is not understood; BPE is", type);
  if (members.has("dropout"))
    members.at("dropout").need(members.at("dropout").value() == 0,
                               "dropout makes ids random; make it null");
  members.skip("dropout");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const std::string text = members.text_or(key, ""); !text.empty())
      members.at(key).refuse("'{}' is not understood; only none is", text);
  BpeModelParts parts;
  parts.by_bytes = by_bytes;
  parts.whole_words = members.flag_or("ignore_merges", false);
  const JsonPlace vocabulary = members.at("vocab");
  const Ids ids = read_vocabulary(vocabulary);
  read_merges(members.at("merges"), ids, parts);
  read_unknown(members, ids, parts);
  members.finish();
  place_tokens(vocabulary, ids, parts);
  return parts;
}

bool same_token(const BpeModel& model, const AddedToken& token) {
  const std::string& text = model.tokens()[static_cast<size_t>(token.id)];
  return text == token.content || (model.by_bytes() && to_printable(text) == token.content);
}

TemplateIds read_template_ids(JsonMembers& members) {
  std::unordered_map<std::string, TokenIds> special;
  const JsonPlace tokens = members.at("special_tokens");
  tokens.need(tokens.value().is_object(), "must be an object, not {}", tokens.excerpt());
  for (const auto& [name, value] : tokens.value().items()) {
    JsonMembers token(tokens.child(value, name));
    token.skip("id");
    token.skip("tokens");
    const JsonPlace list = token.at("ids");
    for (size_t i = 0; i < list.array().size(); ++i)
      special[name].push_back(
          static_cast<int32_t>(list.child(list.array()[i], i).integer(0, INT32_MAX)));
    token.finish();
  }
  members.skip("pair");
  TemplateIds out;
  bool met_text = false;
  const JsonPlace single = members.at("single");
  for (size_t i = 0; i < single.array().size(); ++i) {
    const JsonPlace place = single.child(single.array()[i], i);
    JsonMembers piece(place);
    const bool is_text = piece.has("Sequence");
    JsonMembers named(piece.at(is_text ? "Sequence" : "SpecialToken"));
    const std::string name = named.at("id").text();
    named.skip("type_id");
    named.finish();
    piece.finish();
    if (is_text) {
      place.need(name == "A" && !met_text, "the text must be there once, as 'A', not '{}'", name);
      met_text = true;
      continue;
    }
    place.need(special.contains(name), "'{}' is not among special_tokens", name);
    TokenIds& ids = met_text ? out.after : out.before;
    ids.insert(ids.end(), special[name].begin(), special[name].end());
  }
  single.need(met_text, "the text 'A' is missing");
  return out;
}

}  // namespace rankine
