#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "schedule/lifetimes.h"
#include "state/offload.h"
#include "tensor/arena.h"

namespace rankine {

// Where saved activations are between their STORE and their FETCH: slots of the host arena, or of a
// file. Places are those of StepPlan; which block and when is the program's.
class ActivationTier {
 public:
  ActivationTier(const OffloadSetup& setup, int64_t bytes) : setup_(setup), bytes_(bytes) {}

  bool on_disk() const { return setup_.activations == Offload::disk; }
  void add_to(MemoryPlan& plan) const;
  void bind(Arena& host, Ops& ops);  // makes the file; Error as TierFile's
  // As TierFile's; "" in memory.
  std::string description() const { return file_ ? file_->description() : ""; }
  TierTraffic traffic() const {
    const TierUse use = space_ ? space_->use() : TierUse{};
    return on_disk() ? TierTraffic{.host = {}, .disk = use} : TierTraffic{.host = use, .disk = {}};
  }

  // A piece of what one block keeps of one micro-batch: where its forward leaves it, where its
  // backward reads it, and its place in the tier.
  struct Piece {
    void* forward = nullptr;
    void* backward = nullptr;
    int64_t offset = 0, bytes = 0;
  };
  using Pieces = std::vector<Piece>;
  // Both start copies; wait() for them before the next of the same.
  void store(const Pieces& pieces, std::vector<TierWork>& works);
  void fetch(const Pieces& pieces, std::vector<TierWork>& works);

 private:
  OffloadSetup setup_;
  int64_t bytes_;
  std::unique_ptr<TierSpace> space_;
  const TierFile* file_ = nullptr;
};

}  // namespace rankine
