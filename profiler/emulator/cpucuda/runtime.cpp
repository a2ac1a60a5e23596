// The CPU runtime of one kernel: launches, what Python calls, and what the compiler calls before every
// access.
//
// Compiled WITHOUT -fsanitize=thread; the kernels are compiled WITH it, and its __tsan_* calls land here
// instead of in the sanitizer's own library. One OS thread, one block at a time.
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wmma.h"

namespace cpucuda {
namespace {

constexpr int INVALID_VALUE = 1, INVALID_CONFIGURATION = 9, LAUNCH_FAILURE = 719;  // cudaError_t

int find_library(dl_phdr_info* info, size_t, void* inside) {
  uintptr_t lo = ~0ul, hi = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    lo = std::min<uintptr_t>(lo, info->dlpi_addr + segment.p_vaddr);
    hi = std::max<uintptr_t>(hi, info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
  }
  if ((uintptr_t)inside < lo || (uintptr_t)inside >= hi) return 0;
  lib_lo = lo, lib_hi = hi, lib_base = info->dlpi_addr;
  return 1;
}
// The runtime's own failure, not the kernel's: an exit code, where a kernel dies of a signal.
[[noreturn]] void give_up(const char* call) {
  perror(call);
  _exit(70);
}
unsigned char* map(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) give_up("mmap");
  return (unsigned char*)p;
}
unsigned char* stacks;
void set_up() {
  smem = map(SMEM_CAP + 2 * SMEM_GUARD) + SMEM_GUARD;
  stacks = map((STACK + PAGE) * MAX_THREADS);
  for (int t = 0; t < MAX_THREADS; ++t) {
    unsigned char* guard = stacks + t * (STACK + PAGE);
    if (mprotect(guard, PAGE, PROT_NONE)) give_up("mprotect");  // arrays that overflow a stack end here
    fibers[t].stack = (uintptr_t)guard + PAGE;
  }
  std::memset(granule_shift, 4, sizeof granule_shift);
  dl_iterate_phdr(find_library, (void*)&run_block);
}

}  // namespace

int launch_raw(const char* kernel, dim3 grid, dim3 block, size_t bytes, void (*run)(const void*),
               const void* argument) {
  if (!smem) set_up();
  auto done = [&](int rc) {
    launches.push_back({kernel, grid, block, bytes, rc});
    return rc;
  };
  if (aborted) return done(LAUNCH_FAILURE);
  const uint64_t threads = uint64_t(block.x) * block.y * block.z, blocks = uint64_t(grid.x) * grid.y * grid.z;
  if (!threads || threads > MAX_THREADS || !blocks || grid.y > 65535 || grid.z > 65535) {
    report(LAUNCH_REFUSED, nullptr, 0,
           "%s with grid (%u,%u,%u) and block (%u,%u,%u): at most 1024 threads, and 65535 in y and z", kernel,
           grid.x, grid.y, grid.z, block.x, block.y, block.z);
    return done(INVALID_CONFIGURATION);
  }
  if (bytes > config.device_limit || bytes > SMEM_CAP) {
    report(LAUNCH_REFUSED, nullptr, 0,
           "%s asks for %zu bytes of shared memory a block, the device allows %zu", kernel, bytes,
           config.device_limit);
    return done(INVALID_VALUE);
  }
  if (bytes > config.budget)
    report(OVER_BUDGET, nullptr, 0, "%s asks for %zu bytes of shared memory a block, the budget is %zu",
           kernel, bytes, config.budget);
  int here;
  host_stack = (uintptr_t)&here;
  smem_bytes = bytes, body = run, body_argument = argument;
  std::vector<uint32_t> order(blocks);
  for (uint32_t i = 0; i < blocks; ++i) order[i] = i;
  if (config.random)
    for (size_t i = blocks; i > 1; --i) std::swap(order[i - 1], order[rnd() % i]);
  for (size_t i = 0; i < blocks && !aborted; ++i)
    run_block({order[i] % grid.x, order[i] / grid.x % grid.y, order[i] / grid.x / grid.y}, grid, block);
  return done(aborted ? LAUNCH_FAILURE : 0);
}

}  // namespace cpucuda

// ---------------------------------------------------------------- what Python calls

#define EXPORT __attribute__((visibility("default")))
using namespace cpucuda;
extern "C" {

// Forgets what the last call left; everything until the next one counts as one run.
EXPORT void cpucuda_begin(uint64_t seed, int random, double preempt, uint64_t device_limit, uint64_t budget) {
  config = {random != 0, preempt, device_limit, budget};
  rng = seed * 0x9E3779B97F4A7C15ull + 0x1234567;
  for (int i = 0; i < 8; ++i) rnd();
  defects.clear(), defect_index.clear(), banks.clear(), bank_slots.clear(), launches.clear(),
      buffers.clear();
  aborted = quiet = false;
}
// Before the library is closed: its stacks and shared memory go back to the process.
EXPORT void cpucuda_end() {
  if (!smem) return;
  munmap(smem - SMEM_GUARD, SMEM_CAP + 2 * SMEM_GUARD);
  munmap(stacks, (STACK + PAGE) * MAX_THREADS);
  smem = nullptr;
}
EXPORT void cpucuda_buffer(const void* p, uint64_t bytes, int writable) {
  buffers.push_back({(uintptr_t)p, (uintptr_t)p + bytes, writable != 0});
}
// Lines of fields divided by tabs; the text lives until the next call.
static std::string answer;
static std::string field(const std::string& text) {
  std::string s = text;
  for (char& c : s)
    if (c == '\t' || c == '\n') c = ' ';
  return s;
}
EXPORT const char* cpucuda_defects() {  // kind, pc, other pc, file, line, count, text
  answer.clear();
  for (const Defect& f : defects)
    answer += std::string(KIND_NAME[f.kind]) + '\t' + std::to_string(f.pc) + '\t' +
              std::to_string(f.other_pc) + '\t' + field(f.file) + '\t' + std::to_string(f.line) + '\t' +
              std::to_string(f.count) + '\t' + field(f.text) + '\n';
  return answer.c_str();
}
EXPORT const char* cpucuda_banks() {  // pc, store, requests, wavefronts, ideal
  answer.clear();
  for (const Bank& b : banks)
    answer += std::to_string(b.pc) + '\t' + std::to_string(b.store) + '\t' + std::to_string(b.requests) +
              '\t' + std::to_string(b.wavefronts) + '\t' + std::to_string(b.ideal) + '\n';
  return answer.c_str();
}
EXPORT const char* cpucuda_launches() {  // kernel, return code, grid x y z, block x y z, shared bytes
  answer.clear();
  for (const Launched& l : launches) {
    answer += field(l.kernel) + '\t' + std::to_string(l.rc);
    for (unsigned n : {l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z})
      answer += '\t' + std::to_string(n);
    answer += '\t' + std::to_string(l.bytes) + '\n';
  }
  return answer.c_str();
}

// ---------------------------------------------------------------- what -fsanitize=thread calls

#define SIZED(n)                                                                 \
  void __tsan_read##n(void* p) { access<false>(p, n, CALLER); }                  \
  void __tsan_write##n(void* p) { access<true>(p, n, CALLER); }                  \
  void __tsan_unaligned_read##n(void* p) { access<false>(p, n, CALLER, false); } \
  void __tsan_unaligned_write##n(void* p) { access<true>(p, n, CALLER, false); }
SIZED(1) SIZED(2) SIZED(4) SIZED(8) SIZED(16) void __tsan_read_range(void* p, unsigned long n) {
  access<false>(p, n, CALLER, false);
}
void __tsan_write_range(void* p, unsigned long n) { access<true>(p, n, CALLER, false); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
}
