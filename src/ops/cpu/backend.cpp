#include <omp.h>
#include <xmmintrin.h>

#include <cstring>

#include "base/error.h"
#include "ops/cpu/checks.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/matmul.h"
#include "ops/cpu/team.h"

namespace rankine {
namespace {

struct InstructionSet {
  const char* name;
  bool supported;
  KernelTable (*kernels)();
};

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

InstructionSet choose_instruction_set(const std::string& name) {
  const InstructionSet sets[] = {
      {"avx512_bf16", has_avx512() && __builtin_cpu_supports("avx512bf16"), avx512_bf16::kernels},
      {"avx512", has_avx512(), avx512::kernels},
      {"avx2", has_avx2(), avx2::kernels}};
  bool known = name.empty();
  for (const InstructionSet& set : sets) {
    known = known || name == set.name;
    if (set.supported && (name.empty() || name == set.name)) return set;
  }
  require(known, ErrorKind::usage,
          "unknown instruction set \"{}\": take avx2, avx512 or avx512_bf16", name);
  fail(ErrorKind::environment, "this processor lacks the instruction set {}: {}",
       name.empty() ? "avx2" : name,
       has_avx2() ? "take avx2" : "at least avx2, fma and bmi2 are needed");
}

// Flush to zero and denormals are zero, in the control register of the calling thread.
constexpr unsigned flush_denormals = 0x8040;

}  // namespace

int storage_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return storage_f32;
    case DType::bf16:
      return storage_bf16;
    case DType::f16:
      return storage_f16;
    default:
      fail(ErrorKind::internal, "no kernel for elements of type {}", dtype_name(dtype));
  }
}

CpuOps::CpuOps(int threads, std::string name, const KernelTable& kernels)
    : threads_(threads),
      name_(std::move(name)),
      kernels_(kernels),
      matmul_(std::make_unique<Matmul>()) {
  expect(threads >= 1, "at least one thread");
}

CpuOps::~CpuOps() = default;

std::string CpuOps::description() const {
  return fmt::format("cpu, {}, {} thread{}", name_, threads_, threads_ == 1 ? "" : "s");
}

bool CpuOps::native(DType dtype) const {
  return dtype == DType::f32 || (dtype == DType::bf16 && name_ == "avx512_bf16");
}

void CpuOps::set_workspace(Tensor bytes) {
  expect(reinterpret_cast<uintptr_t>(data_of<void>(bytes)) % 64 == 0,
         "a workspace aligned to 64 bytes");
  workspace_ = bytes;
}

void* CpuOps::workspace(size_t bytes) const {
  const size_t available = workspace_.empty() ? 0 : static_cast<size_t>(workspace_.bytes());
  if (bytes > available)
    fail(ErrorKind::internal, "an operation needs {} bytes of workspace and has {}", bytes,
         available);
  return data_of<void>(workspace_);
}

// The register itself remembers, per thread, whether the team was set up: no flag to keep in step.
// Threads that join a team later are created by one already set, and inherit its register.
void CpuOps::prepare() const {
  if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
  if ((_mm_getcsr() & flush_denormals) == flush_denormals) return;
#pragma omp parallel num_threads(threads_)
  _mm_setcsr(_mm_getcsr() | flush_denormals);
}

TeamCall CpuOps::team() {
  if (team_ == nullptr) team_ = std::make_unique<Team>(threads_);
  return team_->call();
}

void CpuOps::upload(const void* host, Tensor to) {
  std::memcpy(data_of<void>(to), host, static_cast<size_t>(to.bytes()));
}

void CpuOps::download(const Tensor& from, void* host) {
  std::memcpy(host, data_of<void>(from), static_cast<size_t>(from.bytes()));
}

std::unique_ptr<Ops> make_cpu_ops(int threads, const std::string& instruction_set) {
  const InstructionSet set = choose_instruction_set(instruction_set);
  const int count = threads > 0 ? threads : omp_get_num_procs();
  return std::make_unique<CpuOps>(count, set.name, set.kernels());
}

}  // namespace rankine
