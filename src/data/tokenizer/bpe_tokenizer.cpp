#include "data/tokenizer/bpe_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/tokenizer/unicode.h"

namespace rankine {

bool BpeTokenizer::is_special(int32_t id) const {
  const auto at = added_.find(id);
  return at != added_.end() && at->second.special;
}

int64_t BpeTokenizer::text_vocabulary() const {
  const auto needs = [&](int32_t id) {
    const auto among = [&](const TokenIds& ids) { return std::ranges::find(ids, id) != ids.end(); };
    return is_token(id) && (!is_special(id) || among(template_.before) || among(template_.after));
  };
  int64_t size = vocabulary();
  while (size > 0 && !needs(static_cast<int32_t>(size - 1))) --size;
  return size;
}

std::string_view BpeTokenizer::added_text(int32_t id) const {
  const auto at = added_.find(id);
  return at == added_.end() ? std::string_view() : std::string_view(at->second.content);
}

bool BpeTokenizer::spells_special(std::string_view text) const {
  return std::ranges::any_of(added_, [&](const auto& added) {
    return added.second.special && text.find(added.second.content) != std::string_view::npos;
  });
}

int32_t BpeTokenizer::added_id(std::string_view content) const {
  for (const auto& [id, token] : added_)
    if (token.content == content) return id;
  return -1;
}

int32_t BpeTokenizer::token_id(std::string_view content) const {
  if (content.empty()) return -1;
  if (const int32_t added = added_id(content); added >= 0) return added;
  const auto& tokens = model_->tokens();
  const auto at = std::find(tokens.begin(), tokens.end(), content);
  return at == tokens.end() ? -1 : static_cast<int32_t>(at - tokens.begin());
}

bool BpeTokenizer::can_cut_at_lines() const {
  return pre_tokenizer_.cuts_before_lines() && normalizer_.keeps_line_ends();
}

void BpeTokenizer::check_id(int32_t id) const {
  require(is_token(id), ErrorKind::data, "{} is no token of a vocabulary of {}", id, vocabulary());
}

std::string_view BpeTokenizer::token(int32_t id) const {
  // An added token that is in the vocabulary too is spelled there, perhaps in printable bytes.
  const auto& tokens = model_->tokens();
  const auto at = static_cast<size_t>(id);
  return at < tokens.size() && !tokens[at].empty() ? std::string_view(tokens[at])
                                                   : added_.at(id).content;
}

TokenIds BpeTokenizer::encode(std::string_view text, EncodeOptions options) const {
  TokenIds out;
  Encoder(*this).encode(text, options, out);
  return out;
}

std::string BpeTokenizer::decode(const TokenIds& ids, bool skip_special) const {
  std::string out;
  StreamDecoder decoder(*this, skip_special);
  for (const int32_t id : ids) out += decoder.push(id);
  return out + decoder.finish();
}

void Encoder::encode(std::string_view text, EncodeOptions options, TokenIds& out) {
  const auto& [before, after] = tokenizer_.template_;
  if (options.add_special) out.insert(out.end(), before.begin(), before.end());
  tokenizer_.raw_added_.split(
      text, options.parse_special,
      [&](std::string_view piece) {
        const bool first = piece.data() == text.data();
        encode_piece(piece, first ? options.start : PieceStart::later, options.parse_special, out);
      },
      [&](const AddedToken& token) { out.push_back(token.id); });
  if (options.add_special) out.insert(out.end(), after.begin(), after.end());
}

void Encoder::encode_piece(std::string_view piece, PieceStart start, bool parse_special,
                           TokenIds& out) {
  const std::string_view text = tokenizer_.normalizer_.apply(piece, buffers_, start);
  tokenizer_.normalized_added_.split(
      text, parse_special,
      [&](std::string_view part) {
        const bool first = part.data() == text.data();
        tokenizer_.pre_tokenizer_.split(part, first ? start : PieceStart::later,
                                        [&](std::string_view word) { encode_word(word, out); });
      },
      [&](const AddedToken& token) { out.push_back(token.id); });
}

void Encoder::encode_word(std::string_view word, TokenIds& out) {
  if (word.size() > WordCache::longest_word) return tokenizer_.model_->encode(word, scratch_, out);
  const uint64_t hash = WordCache::hash_of(word);
  if (const auto* known = cache_.find(word, hash)) {
    out.insert(out.end(), known->begin(), known->end());
    return;
  }
  const size_t begin = out.size();
  tokenizer_.model_->encode(word, scratch_, out);
  cache_.insert(word, hash, std::span(out).subspan(begin));
}

std::string StreamDecoder::push(int32_t id) {
  tokenizer_.check_id(id);
  if (skip_special_ && tokenizer_.is_special(id)) return "";
  tokenizer_.decoder_.append(tokenizer_.token(id), state_, held_);
  std::string out = held_.substr(0, held_.size() - incomplete_tail(held_));
  held_.erase(0, out.size());
  return out;
}

std::string StreamDecoder::finish() {
  state_ = {};
  return std::exchange(held_, {});
}

}  // namespace rankine
