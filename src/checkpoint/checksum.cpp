#include "checkpoint/checksum.h"

#include <xxhash.h>

#include <algorithm>
#include <new>
#include <vector>

#include "base/file.h"

namespace rankine {

Checksum::Checksum() : state_(XXH3_createState()) {
  if (state_ == nullptr || XXH3_64bits_reset(state_.get()) == XXH_ERROR) throw std::bad_alloc();
}

void Checksum::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void Checksum::update(const void* data, size_t bytes) {
  if (bytes > 0) XXH3_64bits_update(state_.get(), data, bytes);
}

uint64_t Checksum::value() const {
  return XXH3_64bits_digest(state_.get());
}

uint64_t file_checksum(const File& file) {
  constexpr uint64_t chunk = 4 << 20;
  const uint64_t size = file.size();
  std::vector<char> buffer(std::min(chunk, size));
  Checksum checksum;
  for (uint64_t offset = 0; offset < size; offset += chunk) {
    const uint64_t bytes = std::min(chunk, size - offset);
    file.read(buffer.data(), bytes, offset);
    checksum.update(buffer.data(), bytes);
  }
  return checksum.value();
}

}  // namespace rankine
