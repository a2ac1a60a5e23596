// The CPU runtime of one kernel: launches, what Python calls, and what the compiler calls before every
// access.
//
// Compiled WITHOUT -fsanitize=thread; the kernels are compiled WITH it, and its __tsan_* calls land here
// instead of in the sanitizer's own library, as do memcpy, memmove and memset. One OS thread, one block at a
// time, or the blocks of one cluster.
#include <signal.h>
#include <unwind.h>

#include "wmma.h"

namespace cpucuda {
namespace {

constexpr int MOST_FRAMES = 64;  // that are told of a crash: of a stack that ran over there are thousands
constexpr int INVALID_VALUE = 1, INVALID_CONFIGURATION = 9, OUT_OF_RESOURCES = 701,
              LAUNCH_FAILURE = 719, INVALID_CLUSTER_SIZE = 912;  // cudaError_t

int find_library(dl_phdr_info* info, size_t, void* inside) {
  uintptr_t lo = ~0ul, hi = 0, data_lo = ~0ul, data_hi = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t first = info->dlpi_addr + segment.p_vaddr, end = first + segment.p_memsz;
    lo = std::min(lo, first), hi = std::max(hi, end);
    if (segment.p_flags & PF_W) data_lo = std::min(data_lo, first & ~15ul), data_hi = std::max(data_hi, end);
  }
  if ((uintptr_t)inside < lo || (uintptr_t)inside >= hi) return 0;
  lib_lo = lo, lib_hi = hi, lib_base = info->dlpi_addr, lib_data_lo = data_lo, lib_data_hi = data_hi;
  return 1;
}
_Unwind_Reason_Code tell_frame(_Unwind_Context* frame, void* count) {
  if (++*static_cast<int*>(count) > MOST_FRAMES) return _URC_END_OF_STACK;
  int is_exact = 0;  // else it is a return address
  const auto pc = uintptr_t(_Unwind_GetIPInfo(frame, &is_exact));
  if (pc > lib_lo && pc < lib_data_lo) dprintf(2, " %zu", size_t(pc - lib_base - !is_exact));
  return _URC_NO_REASON;
}
// Says on stderr where the process is: a word, then the offset in the library of each frame, innermost first.
void tell_where(const char* word) {
  int frames = 0;
  dprintf(2, "\n%s", word);
  _Unwind_Backtrace(tell_frame, &frames);
  dprintf(2, "\n");
}
// SIGUSR1 is sent to a run that does not end. Of others the process dies once this returns.
void on_signal(int number) {
  tell_where("at");
  if (number == SIGUSR1) _exit(0);
}
bool in_call;  // of the function that is checked
void on_exit() {
  if (in_call) tell_where("exit");
}
unsigned char* stacks;
constexpr size_t SHADOW_BYTES = SMEM_CAP * (sizeof(Cell) + 2 * sizeof(uint32_t));
void free_fibers() {
  munmap(stacks, (STACK + PAGE) * fiber_room);
  if (touched) munmap(touched, STACK * fiber_room);
  delete[] fibers;
  delete[] warps;
  fibers = nullptr, warps = nullptr, touched = nullptr;
}
// For so many blocks side by side, with so many threads in all: a whole number of warps each.
void make_room(int block_count, int threads) {
  for (int b = 0; b < block_count; ++b) {
    Block& block = blocks[b];
    if (block.smem) continue;
    block.smem = map(SMEM_CAP + 2 * SMEM_GUARD) + SMEM_GUARD;
    unsigned char* memory = map(SHADOW_BYTES);
    block.shadow = (Cell*)memory;
    block.written_at = (uint32_t*)(memory + SMEM_CAP * sizeof(Cell));
    block.read_at = block.written_at + SMEM_CAP;
  }
  if (threads > fiber_room) {
    if (fibers) free_fibers();
    fiber_room = threads;
    fibers = new Fiber[threads]();
    warps = new Warp[(threads + WARP - 1) / WARP]();
    stacks = map((STACK + PAGE) * threads);
    for (int t = 0; t < threads; ++t) {
      unsigned char* guard = stacks + t * (STACK + PAGE);
      if (mprotect(guard, PAGE, PROT_NONE)) give_up("mprotect");  // arrays that overflow a stack end here
      fibers[t].stack = (uintptr_t)guard + PAGE;
    }
  }
  if (clocks && !touched) touched = (uint32_t*)map(STACK * fiber_room);
}
void set_up() {
  static unsigned char signal_stack[64 << 10];
  const stack_t alternative{signal_stack, 0, sizeof signal_stack};
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  // Once: what goes wrong in the handler, on a spoilt stack, kills the process too.
  action.sa_handler = on_signal, action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (int number : {SIGUSR1, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(number, &action, nullptr);
  std::atexit(on_exit);
  make_room(1, MAX_THREADS);
  std::memset(granule_shift, 4, sizeof granule_shift);
  dl_iterate_phdr(find_library, (void*)&run_cluster);
}

// Where the no-ops of each __launch_bounds__ begin (include/cpucuda.h). Null both where there is none.
extern "C" __attribute__((weak, visibility("hidden"))) const unsigned char* const
    __start___patchable_function_entries[];
extern "C" __attribute__((weak, visibility("hidden"))) const unsigned char* const
    __stop___patchable_function_entries[];

// The most threads a block that the kernel at this address is compiled for, and the fewest blocks an SM; 0
// where it does not say.
struct LaunchBound {
  unsigned threads, blocks;
};
LaunchBound launch_bound(const void* code) {
#if defined(__x86_64__)
  const unsigned char noop[] = {0x90};
#else
  const unsigned char noop[] = {0x1f, 0x20, 0x03, 0xd5};  // aarch64
#endif
  const auto* kernel = static_cast<const unsigned char*>(code);
  for (auto at = __start___patchable_function_entries; at != __stop___patchable_function_entries; ++at) {
    const unsigned char* p = *at;  // between it and its own kernel are no-ops alone
    while (p < kernel && !std::memcmp(p, noop, sizeof noop)) p += sizeof noop;
    if (p != kernel) continue;
    const unsigned char* end = kernel;
    while (!std::memcmp(end, noop, sizeof noop)) end += sizeof noop;
    return {unsigned((kernel - *at) / sizeof noop), unsigned((end - kernel) / sizeof noop)};
  }
  return {};
}
bool wants_clocks;
dim3 next_cluster(0, 0, 0);  // of the launch that comes next; 0: none is asked for

}  // namespace

bool ask_for_clocks() { return wants_clocks = true; }
void of_clusters(dim3 size) { next_cluster = size; }
int make_tensor_map(TensorMap* map, const void* base, int columns, int rows, int matrices, int box_columns,
                    int box_rows, uint64_t swizzle) {
  const uint64_t row = uint64_t(columns) * 2, matrix = row * rows;
  const bool is_tensor = (uintptr_t)base % 16 == 0 && columns > 0 && rows > 0 && matrices > 0 &&
                         row % 16 == 0 && matrix < uint64_t(1) << 40;
  const bool is_box = box_columns > 0 && box_columns <= 256 && box_columns * 2 % 16 == 0 && box_rows > 0 &&
                      box_rows <= 256 && (!swizzle || box_columns * 2 == 256 >> int(swizzle));
  if (!is_tensor || !is_box) return INVALID_VALUE;
  const uint64_t sizes[] = {uint64_t(columns), uint64_t(rows), uint64_t(matrices)};
  const uint32_t box[] = {uint32_t(box_columns), uint32_t(box_rows)};
  *map = {(unsigned char*)base, {sizes[0], sizes[1], sizes[2]}, {row, matrix}, swizzle, {box[0], box[1]},
          TensorMap::MAGIC};
  return 0;
}

void note_argument(char kind, const void* bytes, size_t size) {
  noted_arguments += '\t', noted_arguments += kind;
  for (size_t i = 0; i < size; ++i) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(bytes)[i]);
    noted_arguments += digits;
  }
}

// With a comma between thousands: 173,568.
static std::string grouped(size_t number) {
  std::string digits = std::to_string(number);
  for (ptrdiff_t at = ptrdiff_t(digits.size()) - 3; at > 0; at -= 3) digits.insert(size_t(at), ",");
  return digits;
}

int launch_raw(const char* kernel, const void* code, dim3 grid, dim3 block, size_t bytes,
               const cudaStream_t* stream, void (*run)(const void*), const void* argument) {
  auto done = [&](int rc) {
    Dl_info info;
    const bool is_named = code && dladdr(code, &info) && info.dli_sname && info.dli_saddr == code;
    launches.push_back(
        {kernel, grid, block, bytes, rc, is_named ? info.dli_sname : "", std::move(noted_arguments)});
    noted_arguments.clear();
    return rc;
  };
  const dim3 cluster = next_cluster.x ? std::exchange(next_cluster, dim3(0, 0, 0)) : dim3(1);
  if (aborted) return done(LAUNCH_FAILURE);
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  const uint64_t all_blocks = uint64_t(grid.x) * grid.y * grid.z;
  if (!threads || threads > MAX_THREADS || !all_blocks || grid.y > 65535 || grid.z > 65535) {
    report(LAUNCH_REFUSED, nullptr, 0,
           "%s with grid (%u,%u,%u) and block (%u,%u,%u): at most 1024 threads, and 65535 in y and z", kernel,
           grid.x, grid.y, grid.z, block.x, block.y, block.z);
    return done(INVALID_CONFIGURATION);
  }
  const LaunchBound bound = launch_bound(code);
  if (bound.threads && threads > bound.threads) {
    report(LAUNCH_REFUSED, static_cast<const char*>(code) + 1, 0,
           "%s with %u threads a block: its __launch_bounds__ is %u, and a GPU launches no more", kernel,
           unsigned(threads), bound.threads);
    return done(OUT_OF_RESOURCES);
  }
  const uint64_t ranks = uint64_t(cluster.x) * cluster.y * cluster.z;
  if (!ranks || ranks > MAX_CLUSTER || grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z) {
    report(LAUNCH_REFUSED, code ? static_cast<const char*>(code) + 1 : nullptr, 0,
           "%s in clusters of (%u,%u,%u): at most %d blocks, of which the grid (%u,%u,%u) is a multiple",
           kernel, cluster.x, cluster.y, cluster.z, MAX_CLUSTER, grid.x, grid.y, grid.z);
    return done(INVALID_CLUSTER_SIZE);
  }
  if (bytes > config.device_limit || bytes > SMEM_CAP || !config.device_limit) {
    report(LAUNCH_REFUSED, nullptr, 0,
           "%s requests %s B of shared memory per block; the device allows %s B", kernel,
           grouped(bytes).c_str(), grouped(config.device_limit).c_str());
    return done(INVALID_VALUE);
  }
  if (stream && *stream != config.stream)
    report(MISUSE, code ? static_cast<const char*>(code) + 1 : nullptr, 0,
           "%s is launched on another stream than the one that its caller gave", kernel);
  if (bytes > config.budget)
    report(OVER_BUDGET, nullptr, 0, "%s requests %s B of shared memory per block; budget %s B", kernel,
           grouped(bytes).c_str(), grouped(config.budget).c_str());
  if (!config.run) return done(0);
  int here;
  host_stack = (uintptr_t)&here;
  smem_bytes = bytes, body = run, body_argument = argument;
  block_dim = block, grid_dim = grid, cluster_dim = cluster;
  nthreads = threads, nwarps = (nthreads + WARP - 1) / WARP, nblocks = ranks;
  clocks = wants_clocks, blocks_an_sm = std::max(1u, bound.blocks);
  make_room(nblocks, nblocks * nwarps * WARP);
  cta = blocks;
  tracked[0].lo = lib_data_lo, tracked[0].hi = lib_data_hi;
  launch_start = ++now;
  start_order(true);
  const uint32_t clusters = all_blocks / ranks, x = grid.x / cluster.x, y = grid.y / cluster.y;
  std::vector<uint32_t> order(clusters);
  for (uint32_t i = 0; i < clusters; ++i) order[i] = i;
  if (config.random)
    for (size_t i = clusters; i > 1; --i) std::swap(order[i - 1], order[rnd() % i]);
  for (size_t i = 0; i < clusters && !aborted; ++i) {
    const uint32_t c = order[i];
    run_cluster({c % x * cluster.x, c / x % y * cluster.y, c / x / y * cluster.z});
  }
  return done(aborted ? LAUNCH_FAILURE : 0);
}

}  // namespace cpucuda

// ---------------------------------------------------------------- what Python calls

#define EXPORT __attribute__((visibility("default")))
using namespace cpucuda;
extern "C" {

// Forgets what the last call left; everything until the next one counts as one run.
EXPORT void cpucuda_begin(uint64_t seed, int random, double preempt, int landing, uint64_t device_limit,
                          uint64_t budget, uint64_t stream, int run) {
  if (!fibers) set_up();  // not at the first launch: host code too may not end
  config = {random != 0, preempt, Landing(landing), device_limit, budget, run != 0, (cudaStream_t)stream};
  rng = seed * 0x9E3779B97F4A7C15ull + 0x1234567;
  for (int i = 0; i < 8; ++i) rnd();
  defects.clear(), defect_index.clear(), banks.clear(), bank_slots.clear(), launches.clear(),
      noted_arguments.clear(), buffers.clear();
  forget_global(), overwrites = 0;
  if (now > 1u << 31) {  // before times wrap
    for (const Block& block : blocks)
      if (block.smem) std::memset(block.shadow, 0, SHADOW_BYTES);
    now = block_start = 1;
  }
  next_cluster = dim3(0, 0, 0);
  aborted = quiet = false;
  in_call = true;
}
// Before the library is closed: its stacks and shared memory go back to the process.
EXPORT void cpucuda_end() {
  if (!fibers) return;
  free_fibers();
  for (Block& block : blocks)
    if (block.smem) {
      munmap(block.smem - SMEM_GUARD, SMEM_CAP + 2 * SMEM_GUARD);
      munmap(block.shadow, SHADOW_BYTES);
      block.smem = nullptr;
    }
  for (GlobalCell* chunk : chunks) munmap(chunk, CHUNK_CELLS * sizeof *chunk);
  chunks.clear(), tracked.clear();  // the process may keep the library, which is then set up anew
  fiber_room = 0;
}
EXPORT void cpucuda_buffer(const void* p, uint64_t bytes, int writable, int argument) {
  const uintptr_t lo = (uintptr_t)p, hi = lo + bytes;
  buffers.push_back({lo, hi, writable ? uint32_t(tracked.size()) : 0, argument});
  if (writable) tracked.push_back({lo, hi, true, 4, {}});
}
// Lines of fields divided by tabs; the text lives until the next call.
static std::string answer;
EXPORT const char* cpucuda_defects() {  // kind, pc, other pc, file, line, count, text
  in_call = false;
  answer.clear();
  for (const Defect& f : defects) answer += as_row(f);
  return answer.c_str();
}
EXPORT const char* cpucuda_banks() {  // pc, store, requests, wavefronts, ideal
  answer.clear();
  for (const Bank& b : banks)
    answer += std::to_string(b.pc) + '\t' + std::to_string(b.store) + '\t' + std::to_string(b.requests) +
              '\t' + std::to_string(b.wavefronts) + '\t' + std::to_string(b.ideal) + '\n';
  return answer.c_str();
}
// kernel, return code, grid x y z, block x y z, shared bytes, symbol, of each argument its kind and bytes
EXPORT const char* cpucuda_launches() {
  answer.clear();
  for (const Launched& l : launches) {
    answer += field(l.kernel) + '\t' + std::to_string(l.rc);
    for (unsigned n : {l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z})
      answer += '\t' + std::to_string(n);
    answer += '\t' + std::to_string(l.bytes) + '\t' + l.symbol + l.arguments + '\n';
  }
  return answer.c_str();
}

// ---------------------------------------------------------------- what -fsanitize=thread calls

// In place of memcpy, memmove and memset, before which the compiler calls nothing: see cpu_library.py.
EXPORT void* cpucuda_memmove(void* to, const void* from, size_t bytes) {
  if (bytes) access<false>(from, bytes, CALLER, false), access<true>(to, bytes, CALLER, false);
  return std::memmove(to, from, bytes);
}
EXPORT void* cpucuda_memcpy(void* to, const void* from, size_t bytes) {
  if (bytes) access<false>(from, bytes, CALLER, false), access<true>(to, bytes, CALLER, false);
  return std::memcpy(to, from, bytes);
}
EXPORT void* cpucuda_memset(void* to, int value, size_t bytes) {
  if (bytes) access<true>(to, bytes, CALLER, false);
  std::memset(to, value, bytes);
  if (value == 0xfe && cur && (uintptr_t)to - cur->stack < STACK)  // g++ starts an array so: NaN, as there
    for (size_t i = 3 & ~(uintptr_t)to; i < bytes; i += 4) ((unsigned char*)to)[i] = 0xff;
  return to;
}

#define SIZED(n)                                                                 \
  void __tsan_read##n(void* p) { access<false>(p, n, CALLER); }                  \
  void __tsan_write##n(void* p) { access<true>(p, n, CALLER); }                  \
  void __tsan_unaligned_read##n(void* p) { access<false>(p, n, CALLER, false); } \
  void __tsan_unaligned_write##n(void* p) { access<true>(p, n, CALLER, false); }
SIZED(1) SIZED(2) SIZED(4) SIZED(8) SIZED(16) void __tsan_read_range(void* p, unsigned long n) {
  access<false>(p, n, CALLER, false);
}
void __tsan_write_range(void* p, unsigned long n) { access<true>(p, n, CALLER, false); }
void __tsan_func_entry(void* back) {  // not of an inlined function
  if (!cur) return;
  if (cur->depth < int(sizeof cur->calls / sizeof *cur->calls)) cur->calls[cur->depth] = back;
  ++cur->depth;
}
void __tsan_func_exit() {
  if (cur) --cur->depth;
}
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
}
