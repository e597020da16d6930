#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/data_files.h"
#include "data/json_lines.h"

// What was odd in text files: counted, named by file and line, and refused when there is too much.
namespace rankine {

struct PieceReport {
  uint32_t file = 0;
  LineCounts lines;  // of JSON lines; of text only `replaced`
  uint64_t empty_documents = 0, forced_cuts = 0;
  uint64_t samples_without_target = 0;  // all their replies are excluded or dropped
  bool has_nul = false;                 // in text
};

class TextReport {
 public:
  // `bad_lines`: the largest share of a file's lines.
  TextReport(std::vector<DataFile> files, double bad_lines)
      : files_(std::move(files)), bad_lines_(bad_lines) {}

  // The pieces come in the order of the files. Error{data} when a file's share is exceeded.
  void add(const PieceReport& piece);
  void finish();
  // One line for each kind of oddity; call after finish().
  std::vector<std::string> notes() const;

 private:
  void check_share() const;

  std::vector<DataFile> files_;
  double bad_lines_;
  PieceReport file_;  // of the file under way
  std::vector<std::string> first_faults_;
  LineCounts all_;
  uint64_t empty_documents_ = 0, forced_cuts_ = 0, samples_without_target_ = 0;
  std::vector<uint32_t> nul_files_;
};

}  // namespace rankine
