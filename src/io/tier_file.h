#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "io/tier_file_claim.h"
#include "tensor/tier_space.h"

// The disk tier's storage: one nameless file of fixed size that lives as long as this object, read
// and written in large pieces while the caller does something else, past the page cache where the
// file system allows it.
namespace rankine {

class TierQueue;

class TierFile final : public TierSpace {
 public:
  enum class Engine : uint8_t { best, io_uring, threads };
  struct Setup {
    std::filesystem::path folder;  // made when missing
    std::string name;              // in messages; nothing of that name is in the folder
    uint64_t bytes = 0;            // a multiple of `alignment`
    Engine engine = Engine::best;  // io_uring where it is built in and permitted, else threads
    bool direct = true;            // past the page cache where that is possible
  };
  static constexpr uint64_t alignment = 4096;

  // Makes the file and reserves all its bytes. Error{resource} when they do not fit, {environment}
  // when the folder cannot be used or an engine asked for by name is not to be had.
  explicit TierFile(const Setup& setup);
  ~TierFile() override;  // waits for what is under way
  TierFile(const TierFile&) = delete;
  TierFile& operator=(const TierFile&) = delete;

  // Offset, memory and bytes are multiples of `alignment`.
  TierUse use() const override;
  TierWork start_read(uint64_t offset, void* to, uint64_t bytes) override;
  TierWork start_write(uint64_t offset, const void* from, uint64_t bytes) override;

  // All its bytes as memory, until the caller unmaps them; Error{environment}.
  void* map() const;

  const std::filesystem::path& path() const { return claim_.path(); }
  uint64_t bytes() const { return claim_.bytes(); }
  bool direct() const { return direct_; }
  std::string_view engine_name() const;  // "io_uring" or "threads"
  // "16.4 GiB in '/scratch/...', io_uring, direct"
  std::string description() const;

 private:
  TierWork start(bool write, uint64_t offset, std::byte* memory, uint64_t bytes);

  FileClaim claim_;
  bool direct_;
  std::unique_ptr<TierQueue> queue_;
};

// The first multiple of TierFile::alignment at or behind `memory`.
inline void* page_aligned(void* memory) {
  constexpr uintptr_t page = TierFile::alignment;
  const uintptr_t behind = reinterpret_cast<uintptr_t>(memory) % page;
  return static_cast<std::byte*>(memory) + (behind == 0 ? 0 : page - behind);
}

}  // namespace rankine
