#include "tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace rankine {
namespace {

constexpr uint64_t huge_page = uint64_t{2} << 20;

}  // namespace

Arena::Arena(const MemoryPlan& plan, Tier tier) : bytes_(plan.peak_bytes(tier)) {
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
  if (bytes_ == 0) return;
  // Map one huge page more than needed, so that the start can be aligned to one.
  mapped_ = (bytes_ + huge_page - 1) / huge_page * huge_page;
  void* mapped = ::mmap(nullptr, mapped_ + huge_page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(mapped != MAP_FAILED, ErrorKind::resource, "cannot reserve {} of memory: {}",
          format_bytes(bytes_), std::strerror(errno));
  const uint64_t behind = reinterpret_cast<uintptr_t>(mapped) % huge_page;
  const uint64_t before = behind == 0 ? 0 : huge_page - behind, after = huge_page - before;
  memory_ = static_cast<std::byte*>(mapped) + before;
  if (before > 0) ::munmap(mapped, before);
  ::munmap(memory_ + mapped_, after);
  // Huge pages only where they lie wholly inside, so that resident memory stays at the plan.
  if (bytes_ >= huge_page) ::madvise(memory_, bytes_ / huge_page * huge_page, MADV_HUGEPAGE);
}

Arena::~Arena() {
  if (memory_ != nullptr) ::munmap(memory_, mapped_);
}

Tensor Arena::take(std::string_view name, DType dtype, const Shape& shape) {
  const auto found = places_.find(std::string(name));
  if (found == places_.end())
    fail(ErrorKind::internal, "'{}' was taken from an arena but is not in its memory plan", name);
  Place& place = found->second;
  const Tensor view{memory_ + place.offset, dtype, shape};
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
