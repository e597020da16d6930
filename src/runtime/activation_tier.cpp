#include "runtime/activation_tier.h"

#include <unistd.h>

#include <algorithm>

#include "io/tier_memory.h"

namespace rankine {
namespace {

constexpr const char* name = "stored activations";

}  // namespace

void ActivationTier::add_to(MemoryPlan& plan) const {
  plan.add({name, "activations", static_cast<uint64_t>(bytes_), Life::permanent, "",
            tier_of(setup_.activations)});
}

void ActivationTier::bind(Arena& host, Ops& ops) {
  std::unique_ptr<TierSpace> space;
  if (setup_.activations == Offload::host) {
    space = std::make_unique<TierMemory>(host.take(name, DType::u8, Shape{bytes_}));
  } else {
    auto file = std::make_unique<TierFile>(TierFile::Setup{
        .folder = setup_.folder,
        .name = fmt::format("rankine-offload-{}-{}-activations.tier", ::getpid(), setup_.rank),
        .bytes = std::max(TierFile::alignment, static_cast<uint64_t>(bytes_))});
    file_ = file.get();
    space = std::move(file);
  }
  space_ = ops.device().reach(std::move(space), ops.queue());
}

void ActivationTier::store(const Pieces& pieces, std::vector<TierWork>& works) {
  works.clear();
  for (const Piece& piece : pieces)
    works.push_back(space_->start_write(static_cast<uint64_t>(piece.offset), piece.forward,
                                        static_cast<uint64_t>(piece.bytes)));
}

void ActivationTier::fetch(const Pieces& pieces, std::vector<TierWork>& works) {
  works.clear();
  for (const Piece& piece : pieces)
    works.push_back(space_->start_read(static_cast<uint64_t>(piece.offset), piece.backward,
                                       static_cast<uint64_t>(piece.bytes)));
}

}  // namespace rankine
