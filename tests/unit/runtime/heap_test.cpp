#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "support/tiny_models.h"
#include "support/training.h"

// This program's operator new notes who calls it, while asked to. Every form is replaced, since the
// library's own would pair its memory with the delete below.
namespace {

std::atomic<bool> watching{false};
std::atomic<long> own_allocations{0}, vendor_allocations{0};

bool from_vendor(const void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "dnnl") != nullptr;
}

// Not inlined, so that the compiler does not pair malloc and free with new and delete.
[[gnu::noinline]] void* allocate(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (watching) ++(from_vendor(caller) ? vendor_allocations : own_allocations);
  void* memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(bytes == 0 ? 1 : bytes)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* allocate_or_null(std::size_t bytes, std::size_t alignment, const void* caller) noexcept {
  try {
    return allocate(bytes, alignment, caller);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

[[gnu::noinline]] void release(void* p) {
  std::free(p);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes, 1, __builtin_return_address(0));
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes, 1, __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, 1, __builtin_return_address(0));
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, 1, __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void* operator new[](std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void operator delete(void* p) noexcept {
  release(p);
}
void operator delete[](void* p) noexcept {
  release(p);
}
void operator delete(void* p, std::size_t) noexcept {
  release(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  release(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  release(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  release(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  release(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  release(p);
}

namespace rankine::test {
namespace {

class Heap : public ::testing::TestWithParam<TinyModel> {};

// oneDNN keeps small objects of its own per call; nothing else may touch the heap.
TEST_P(Heap, StepsAllocateNothing) {
  for (const DType compute : {DType::f32, DType::bf16, DType::f16}) {
    Training training(GetParam().config, {.shape = {2, 16}, .micros = 2, .compute = compute});
    const std::vector<int32_t> ids = random_ids(64, GetParam().config.vocabulary, 1);
    training.trainer->step(1, 1e-3, ids, ids);  // kernels are made at first use
    own_allocations = 0;
    watching = true;
    training.trainer->step(2, 1e-3, ids, ids);
    training.trainer->step(3, 1e-3, ids, ids);
    watching = false;
    EXPECT_EQ(own_allocations, 0) << dtype_name(compute);
  }
}

TEST(HeapWatch, SeesAnAllocation) {
  own_allocations = 0;
  watching = true;
  const auto* seen = new std::vector<int>(100);
  watching = false;
  EXPECT_GE(own_allocations, 1);
  delete seen;
}

INSTANTIATE_TEST_SUITE_P(Models, Heap, ::testing::ValuesIn(tiny_models()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace rankine::test
