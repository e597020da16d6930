#include "model/tensor_region.h"

#include "base/error.h"

namespace rankine {

Tensor TensorRegion::own(const Tensor& all) const {
  if (!split_.splits_rows()) return all;
  const int64_t rows = split_.rows(all.shape[0]);
  return all.rows(split_.rank * rows, rows);
}

void TensorRegion::enter(const Tensor& all) const {
  if (split_.splits_rows()) ranks_->all_gather(own(all), all, "region entry").lead(*queue_);
}

Work TensorRegion::leave(const Tensor& all) const {
  if (split_.ranks == 1) return {};
  if (split_.sequence) return ranks_->reduce_scatter(all, own(all), "region exit");
  return ranks_->all_reduce(all, Reduction::sum, "region exit");
}

void TensorRegion::collect(const Tensor& in, Tensor out) const {
  expect(split_.ranks > 1, "only several ranks have parts to collect");
  ranks_->all_gather(in, out, "vocabulary statistics").lead(*queue_);
}

}  // namespace rankine
