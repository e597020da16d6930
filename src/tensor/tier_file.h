#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tensor/tier_file_claim.h"

// The disk tier's storage: one file of fixed size that lives as long as this object, read and
// written in large pieces while the caller does something else, past the page cache where the file
// system allows it.
namespace rankine {

class TierQueue;
class TierRequest;

// A handle of a read or write under way; its memory must live and stay untouched until it is done.
// A default one is done. It may outlive the file.
class TierWork {
 public:
  TierWork() = default;
  explicit TierWork(std::shared_ptr<TierRequest> request) : request_(std::move(request)) {}
  bool done() const;
  // Sleeps until it is done and lets go of it. Error with path, reason and offset when it failed:
  // {resource} for lack of space, {data} when the file was cut, {environment} for all else.
  void wait();

 private:
  std::shared_ptr<TierRequest> request_;
};

class TierFile {
 public:
  enum class Engine : uint8_t { best, io_uring, threads };
  struct Setup {
    std::filesystem::path folder;  // made when missing
    std::string name;              // rankine-offload-*.tier
    uint64_t bytes = 0;            // a multiple of `alignment`
    Engine engine = Engine::best;  // io_uring where it is built in and permitted, else threads
    bool direct = true;            // past the page cache where that is possible
  };
  static constexpr uint64_t alignment = 4096;

  // Removes left-overs of killed runs, makes the file, locks it and reserves all its bytes.
  // Error{resource} when they do not fit, {environment} when the folder cannot be used, the file is
  // in use, or an engine asked for by name is not to be had.
  explicit TierFile(const Setup& setup);
  ~TierFile();  // waits for what is under way, then removes the file
  TierFile(const TierFile&) = delete;
  TierFile& operator=(const TierFile&) = delete;

  // Any number may be under way, in any order; one that writes bytes that another one touches must
  // be waited for first. Offset, memory and bytes are multiples of `alignment`. Any thread may
  // call.
  TierWork start_read(uint64_t offset, void* to, uint64_t bytes);
  TierWork start_write(uint64_t offset, const void* from, uint64_t bytes);

  const std::filesystem::path& path() const { return claim_.path(); }
  uint64_t bytes() const { return claim_.bytes(); }
  bool direct() const { return direct_; }
  std::string_view engine_name() const;  // "io_uring" or "threads"
  int left_overs_removed() const { return claim_.left_overs_removed(); }

 private:
  TierWork start(bool write, uint64_t offset, std::byte* memory, uint64_t bytes);

  FileClaim claim_;
  bool direct_;
  std::unique_ptr<TierQueue> queue_;
};

}  // namespace rankine
