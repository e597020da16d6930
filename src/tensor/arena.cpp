#include "tensor/arena.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace rankine {

Arena::Arena(const MemoryPlan& plan, Tier tier, Device& device)
    : device_(device),
      kind_(tier == Tier::device ? device.kind() : DeviceKind::cpu),
      bytes_(plan.peak_bytes(tier)) {
  uint64_t permanent = 0;
  std::map<std::string, uint64_t> phase_end;
  const uint64_t scratch = plan.permanent_bytes(tier);
  for (const Allocation& a : plan.entries()) {
    if (a.tier != tier) continue;
    uint64_t& end = a.life == Life::permanent
                        ? permanent
                        : phase_end.try_emplace(a.phase, scratch).first->second;
    places_[a.name] = {a, end};
    end += a.bytes;
  }
  memory_ = tier == Tier::device ? device.reserve(bytes_) : device.reserve_host(bytes_);
}

Tensor Arena::take(std::string_view name, DType dtype, const Shape& shape) {
  const auto found = places_.find(std::string(name));
  if (found == places_.end())
    fail(ErrorKind::internal, "'{}' was taken from an arena but is not in its memory plan", name);
  Place& place = found->second;
  const Tensor view{static_cast<char*>(memory_->data()) + place.offset, dtype, shape, kind_};
  if (static_cast<uint64_t>(view.bytes()) > place.allocation.bytes)
    fail(ErrorKind::internal, "'{}' takes {} bytes, but its memory plan lists {}", name,
         view.bytes(), place.allocation.bytes);
  place.taken = true;
  return view;
}

uint64_t Arena::peak_bytes() const {
  uint64_t lasting = 0, scratch = 0;
  std::map<std::string, uint64_t> phases;
  for (const auto& [name, place] : places_) {
    const uint64_t bytes = place.taken ? place.allocation.bytes : 0;
    if (place.allocation.life == Life::scratch)
      scratch = std::max(scratch, phases[place.allocation.phase] += bytes);
    else
      lasting += bytes;
  }
  return lasting + scratch;
}

std::vector<std::string> Arena::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : places_)
    if (!place.taken) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace rankine
