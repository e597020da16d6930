#include "data/text_report.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {
namespace {

constexpr size_t most_faults = 5;
constexpr uint64_t judged_at = 1000;  // bad lines, before a file ends

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : "; ") + part;
  return out;
}

}  // namespace

void TextReport::add(const PieceReport& piece) {
  if (piece.file != file_.file) {
    check_share();
    file_ = {.file = piece.file, .lines = {}};
  }
  LineCounts& lines = file_.lines;
  for (const LineFault& fault : piece.lines.faults) {
    std::string text = fmt::format("{}:{}: {}", files_[piece.file].path.string(),
                                   lines.lines + fault.line + 1, fault.reason);
    if (lines.faults.size() < most_faults) lines.faults.push_back({0, text});
    if (first_faults_.size() < most_faults) first_faults_.push_back(std::move(text));
  }
  for (LineCounts* counts : {&lines, &all_}) {
    counts->lines += piece.lines.lines;
    counts->blank += piece.lines.blank;
    counts->bad += piece.lines.bad;
    counts->replaced += piece.lines.replaced;
  }
  empty_documents_ += piece.empty_documents;
  forced_cuts_ += piece.forced_cuts;
  samples_without_target_ += piece.samples_without_target;
  if (piece.has_nul && (nul_files_.empty() || nul_files_.back() != piece.file))
    nul_files_.push_back(piece.file);
  if (lines.bad >= judged_at) check_share();
}

void TextReport::finish() {
  check_share();
}

void TextReport::check_share() const {
  const LineCounts& lines = file_.lines;
  const uint64_t full = lines.lines - lines.blank;
  if (static_cast<double>(lines.bad) <= bad_lines_ * static_cast<double>(full)) return;
  std::vector<std::string> faults;
  for (const LineFault& fault : lines.faults) faults.push_back(fault.reason);
  fail(ErrorKind::data,
       "'{}': {} of {} JSON lines are bad, more than --bad-lines {} allows; the first: {}",
       files_[file_.file].path.string(), lines.bad, full, bad_lines_, joined(faults));
}

std::vector<std::string> TextReport::notes() const {
  std::vector<std::string> out;
  if (all_.bad > 0)
    out.push_back(fmt::format("{} of {} JSON lines are bad and left out; the first: {}", all_.bad,
                              all_.lines - all_.blank, joined(first_faults_)));
  if (all_.replaced > 0)
    out.push_back(fmt::format("{} places that are not UTF-8 became U+FFFD", all_.replaced));
  if (empty_documents_ > 0)
    out.push_back(fmt::format("{} empty documents are left out", empty_documents_));
  if (samples_without_target_ > 0)
    out.push_back(fmt::format(
        "{} conversations have nothing to learn (no reply, or \"weight\": 0 on all) and are left "
        "out",
        samples_without_target_));
  if (!nul_files_.empty())
    out.push_back(fmt::format(
        "'{}'{}: NUL bytes in text; is it a binary file?", files_[nul_files_[0]].path.string(),
        nul_files_.size() > 1 ? fmt::format(" and {} more", nul_files_.size() - 1)
                              : std::string()));
  if (forced_cuts_ > 0)
    out.push_back(fmt::format(
        "long documents were cut at {} places where the tokenizer might have joined what is on "
        "both sides",
        forced_cuts_));
  return out;
}

}  // namespace rankine
