#include "comm/host_rings.h"

#include <unistd.h>

#include <algorithm>

#include "comm/group.h"
#include "comm/shared_ring.h"

namespace rankine {
namespace {

constexpr size_t lanes = 3;  // collectives, and transfers in either direction
enum Lane : size_t { collectives, forth, back };

}  // namespace

RingShape rings_of_one_host(size_t members) {
  return {std::clamp<size_t>(16 / std::max<size_t>(1, members), 2, 8), size_t{64} << 10};
}

HostRings::HostRings(std::vector<bool> near, size_t mine, RingShape shape)
    : near_(std::move(near)), mine_(mine), shape_(shape), memory_(near_.size()) {}

size_t HostRings::bytes() const {
  const auto peers = static_cast<size_t>(std::ranges::count(near_, true)) - 1;
  return peers * lanes * SharedRing::bytes(shape_.slots, shape_.piece_bytes);
}

RingFile HostRings::make() {
  if (bytes() > 0) memory_[mine_] = SharedMemory::create(bytes());
  return {::getpid(), memory_[mine_].descriptor()};
}

bool HostRings::open(std::span<const RingFile> files) {
  if (bytes() > 0 && memory_[mine_].data() == nullptr) return false;
  for (size_t m = 0; m < near_.size(); ++m) {
    if (m == mine_ || !near_[m]) continue;
    memory_[m] = SharedMemory::open_of(files[m].pid, files[m].descriptor, bytes());
    if (memory_[m].data() == nullptr) return false;
  }
  return true;
}

SharedRing& HostRings::ring(size_t owner, size_t to, size_t lane) const {
  size_t before = 0;
  for (size_t m = 0; m < to; ++m) before += near_[m] && m != owner ? 1 : 0;
  return *reinterpret_cast<SharedRing*>(memory_[owner].data() +
                                        (before * lanes + lane) *
                                            SharedRing::bytes(shape_.slots, shape_.piece_bytes));
}

void HostRings::add_links(size_t member, GroupLinks& links) const {
  const auto add = [&](std::vector<std::unique_ptr<Link>>& list, Lane out, Lane in) {
    list.push_back(member == mine_ ? nullptr
                                   : std::make_unique<SharedRingLink>(
                                         ring(mine_, member, out), ring(member, mine_, in),
                                         shape_.slots, shape_.piece_bytes));
  };
  add(links.collective, collectives, collectives);
  add(links.sending, forth, back);
  add(links.receiving, back, forth);
}

}  // namespace rankine
