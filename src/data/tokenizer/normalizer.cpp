#include "data/tokenizer/normalizer.h"

#include <algorithm>

#include "data/tokenizer/unicode.h"

namespace rankine {

std::string string_pattern(const JsonPlace& place) {
  JsonMembers pattern(place);
  place.need(place.value().contains("String"),
             "only {{\"String\": ...}} is understood here, not {}", place.excerpt());
  std::string text = pattern.at("String").text();
  pattern.finish();
  place.need(!text.empty(), "the string is empty");
  return text;
}

std::string_view replace_all(std::string_view text, std::string_view pattern,
                             std::string_view content, std::string& buffer) {
  size_t at = text.find(pattern);
  if (at == std::string_view::npos) return text;
  buffer.clear();
  size_t done = 0;
  for (; at != std::string_view::npos; at = text.find(pattern, done)) {
    buffer.append(text.substr(done, at - done)).append(content);
    done = at + pattern.size();
  }
  buffer.append(text.substr(done));
  return buffer;
}

Normalizer::Normalizer(const JsonPlace& place) {
  if (!place.value().is_null()) add(place);
}

void Normalizer::add(const JsonPlace& place) {
  JsonMembers members(place);
  const std::string type = members.at("type").text();
  if (type == "Sequence") {
    const JsonPlace list = members.at("normalizers");
    for (size_t i = 0; i < list.array().size(); ++i) add(list.child(list.array()[i], i));
  } else if (type == "NFC") {
    steps_.push_back({Step::Kind::compose, "", ""});
  } else if (type == "Prepend") {
    steps_.push_back({Step::Kind::prepend, "", members.at("prepend").text()});
  } else if (type == "Replace") {
    steps_.push_back(
        {Step::Kind::replace, string_pattern(members.at("pattern")), members.at("content").text()});
  } else {
    members.at("type").refuse(
        "normalizer '{}' is not understood; NFC, Prepend, Replace and Sequence are", type);
  }
  members.finish();
}

bool Normalizer::prepends() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const Step& step) { return step.kind == Step::Kind::prepend; });
}

bool Normalizer::keeps_line_ends() const {
  return std::all_of(steps_.begin(), steps_.end(),
                     [](const Step& step) { return step.kind == Step::Kind::compose; });
}

std::string_view Normalizer::apply(const Step& step, std::string_view text, std::string& buffer) {
  if (step.kind == Step::Kind::compose) return compose(text, buffer);
  if (step.kind == Step::Kind::replace)
    return replace_all(text, step.pattern, step.content, buffer);
  if (text.empty()) return text;
  buffer.assign(step.content).append(text);
  return buffer;
}

std::string_view Normalizer::apply(std::string_view text, std::string (&buffers)[2],
                                   PieceStart start) const {
  size_t into = 0;
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::prepend && start == PieceStart::within) continue;
    const std::string_view changed = apply(step, text, buffers[into]);
    // The other buffer is free once its text was read.
    if (changed.data() == buffers[into].data()) into = 1 - into;
    text = changed;
  }
  return text;
}

}  // namespace rankine
