#include "tensor/tier_space.h"

#include "tensor/tier_file_queue.h"

namespace rankine {

bool TierWork::done() const {
  return !request_ || request_->done();
}

void TierWork::wait() {
  if (const auto request = std::move(request_)) request->wait();
}

void TierWork::end() noexcept {
  if (const auto request = std::move(request_)) request->end();
}

}  // namespace rankine
