#include "tensor/tier_space.h"

namespace rankine {

bool TierWork::done() const {
  return !request_ || request_->done();
}

void TierWork::wait() {
  if (const auto request = std::move(request_)) request->wait();
}

void TierWork::lead(Queue& queue, const Queue::Site& site) {
  if (auto request = std::move(request_)) queue.follow(Mark(std::move(request)), site);
}

void TierWork::end() noexcept {
  if (const auto request = std::move(request_)) request->end();
}

}  // namespace rankine
