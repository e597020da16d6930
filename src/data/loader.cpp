#include "data/loader.h"

#include <algorithm>

#include "base/error.h"

namespace rankine {

Loader::Loader(std::span<const Corpus> corpora, const SampleMix& mix, const BatchShape& shape,
               bool document_mask)
    : corpora_(corpora), mix_(mix), shape_(shape), document_mask_(document_mask) {
  check(shape);
  expect(!corpora.empty(), "there is a corpus");
  for (size_t i = 0; i < corpora.size(); ++i) {
    const SampleOrder& order = mix.order(i);
    expect(order.training_windows() + order.validation_windows() <= corpora[i].windows() &&
               corpora[i].seq_length() == corpora[0].seq_length(),
           "an order for these corpora");
    require(!document_mask || corpora[i].knows_documents(), ErrorKind::usage,
            "--document-mask: '{}' does not say which token ends a document; give the --tokenizer "
            "it was made with",
            corpora[i].data().files().front().string());
  }
}

void Loader::fill(int64_t step, int64_t micro, const WindowRow& rows) const {
  expect(step >= 0 && 0 <= micro && micro < micros(), "a micro-batch of this rank");
  for (int64_t row = 0; row < this->rows(); ++row) {
    const auto [corpus, window] = mix_.training(shape_.sample(step, micro, row));
    corpora_[corpus].fill(window, rows.from(row * seq_length()));
  }
}

int64_t Loader::fill_validation(int64_t first, const WindowRow& rows) const {
  expect(first >= 0, "a validation window");
  const auto windows = static_cast<int64_t>(mix_.validation_windows());
  const int64_t filled = std::clamp<int64_t>(windows - first, 0, this->rows());
  for (int64_t row = 0; row < filled; ++row) {
    const auto [corpus, window] = mix_.validation(static_cast<uint64_t>(first + row));
    corpora_[corpus].fill(window, rows.from(row * seq_length()));
  }
  const WindowRow rest = rows.from(filled * seq_length());
  const int64_t unused = (this->rows() - filled) * seq_length();
  std::fill_n(rest.inputs, unused, 0);
  std::fill_n(rest.targets, unused, -1);
  if (rest.first_keys != nullptr) std::fill_n(rest.first_keys, unused, 0);
  return filled;
}

}  // namespace rankine
