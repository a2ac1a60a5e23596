// State of the runtime: the threads of the running block, shared memory and its shadow, defects, traffic.
#pragma once
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "include/cpucuda.h"
#if !defined(__x86_64__)
#define CPUCUDA_UCONTEXT 1  // the portable way to switch fibers; each switch is a system call
#endif
#if CPUCUDA_UCONTEXT
#include <ucontext.h>
#endif

namespace cpucuda {
namespace {

using Pc = const void*;
#define CALLER __builtin_return_address(0)

constexpr int WARP = 32, MAX_THREADS = 1024;
constexpr size_t SMEM_CAP = 256 << 10;  // above what any chip gives one block (227 KB)
constexpr size_t SMEM_GUARD = 1 << 20;  // either side: an access there has run out of shared memory
constexpr size_t STACK = 128 << 10, PAGE = 4 << 10;

// The kinds of defect, as Python sees them.
#define CPUCUDA_KINDS(X)                               \
  X(RACE_RAW, "race:read-after-write")                 \
  X(RACE_WAR, "race:write-after-read")                 \
  X(RACE_WAW, "race:write-after-write")                \
  X(RACE_GLOBAL_RAW, "race:global-read-after-write")   \
  X(RACE_GLOBAL_WAR, "race:global-write-after-read")   \
  X(RACE_GLOBAL_WAW, "race:global-write-after-write")  \
  X(UNINITIALISED, "uninitialised-shared-read")        \
  X(UNINITIALISED_GLOBAL, "uninitialised-global-read") \
  X(OOB_SHARED, "out-of-bounds-shared")                \
  X(OOB_GLOBAL, "out-of-bounds-global")                \
  X(ASYNC_NOT_WAITED, "cp.async-not-waited")           \
  X(ASYNC_LEFT_PENDING, "cp.async-left-pending")       \
  X(BARRIER_DIVERGENCE, "barrier-divergence")          \
  X(DEADLOCK, "deadlock")                              \
  X(MISALIGNED, "misaligned-access")                   \
  X(MISUSE, "misuse")                                  \
  X(OVER_BUDGET, "over-budget")                        \
  X(LAUNCH_REFUSED, "launch-refused")
#define CPUCUDA_NAME(name, text) name,
#define CPUCUDA_TEXT(name, text) text,
enum Kind { CPUCUDA_KINDS(CPUCUDA_NAME) };
const char* const KIND_NAME[] = {CPUCUDA_KINDS(CPUCUDA_TEXT)};
const char* const OP_NAME[] = {"",  // by Op
                               "__syncwarp",  "__shfl_sync", "__shfl_xor_sync", "__shfl_down_sync",
                               "__shfl_up_sync", "vote",     "mma",             "ldmatrix"};

struct Config {
  bool random = false;                                 // false: warps and lanes in order
  double preempt = 0;                                  // chance of a switch at a memory access
  size_t device_limit = 227 << 10, budget = 99 << 10;  // shared memory a block
  bool run = true;                                     // false: launches are taken, and no block is run
  cudaStream_t stream = nullptr;                       // that the function is called with
} config;

struct Async {
  unsigned char* dst;
  const unsigned char* src;
  uint32_t bytes, zeros;
  int group;
  bool landed;
  Pc pc;
};
// A store over what another thread stored with no order to it: a race unless it changes nothing.
struct Overwrite {
  Kind kind;
  const void* place;
  size_t bytes;  // 0: none, or settled
  unsigned char before[16];
  Pc pc;
  uint32_t other_pc;
  std::string text;
};
enum State { RUNS, AT_BARRIER, DONE };  // a thread that waits in a collective is in RUNS: its warp knows
struct Fiber {
  void* sp;
  uintptr_t stack;  // lowest address
  uint3 index;      // threadIdx
  int id, warp, lane;
  State state;
  Pc pc;  // where it waits
  const char* file;
  int line, place;  // of the barrier: two on one line are two places
  Pc calls[32];     // where the functions it is in return to, outermost first; deeper ones are not kept
  int depth;
  std::vector<Async> async;   // issued and not waited for, oldest first
  int group;                  // of cp.async: the one being filled
  Overwrite overwrite;        // by its last access
  std::vector<uint64_t> log;  // shared accesses since the lanes last met, for the bank model
#if CPUCUDA_UCONTEXT
  ucontext_t uc;
#endif
};
struct Warp {
  unsigned ready, waiting, live;  // a bit a lane; waiting: in a collective
  unsigned logged;                // lanes whose log is not empty
  unsigned parked;                // lanes in __activemask
  uint32_t synced;                // time of the last __syncwarp of the whole warp
  bool partial;                   // __syncwarp of a part has happened since
  uint32_t seen[WARP][WARP];  // then: seen[a][b] = lane a comes after all that lane b did before this time
  Op op[WARP];
  unsigned mask[WARP];
  void* payload[WARP];
  int place[WARP];  // of the __activemask
  uint64_t in[WARP], out[WARP];
  int from[WARP];
};

// What one granule of shared memory remembers. Times are `now`, so that "before the barrier" is one
// comparison. Two readers suffice: if any two warps have read since the barrier, every writer finds one that
// is not its own.
struct Cell {
  uint32_t written, read, other_read;  // when; written < block_start: never in this block
  uint16_t writer : 10, atomic : 1, pending : 1;
  // many: other lanes of the reader's warp have read too, unordered with it
  uint16_t reader : 10, many : 1, other_warp : 5;
};
static_assert(sizeof(Cell) == 16, "two cells a 32-byte load");

unsigned char* smem;
size_t smem_bytes;
// A granule is 16 bytes until a kernel touches less within the same KB (then 8, 4, 2 or 1), for this launch
// and those after it: most accesses cost one cell. The cells of a region start at its first byte's place and
// fill as much of it as they need.
constexpr size_t REGION = 1 << 10;
uint8_t granule_shift[SMEM_CAP / REGION];
Cell shadow[SMEM_CAP];
uint32_t written_at[SMEM_CAP], read_at[SMEM_CAP];  // code offsets of the last write and read
uint32_t now = 1, block_start = 1, barrier = 1;    // `barrier`: time of the last one of the block

Fiber fibers[MAX_THREADS];
Warp warps[MAX_THREADS / WARP];
uint3 block_id;
dim3 block_dim, grid_dim;
Fiber* cur;  // null: host code runs
void* main_sp;
#if CPUCUDA_UCONTEXT
ucontext_t main_uc;
#endif
int nthreads, nwarps, live, at_barrier, running_warp;
unsigned ready_warps;  // a bit each
unsigned linger;       // a warp is left for another one time in linger + 1
bool aborted, quiet;   // quiet: what runs is the emulator's own
uint64_t rng = 1;
void (*body)(const void*);
const void* body_argument;

struct Range {
  uintptr_t lo, hi;
  uint32_t tracked;  // of a buffer that kernels may write: the number of its shadow; 0: an input
  int argument;      // of the function, counted from 1
};
std::vector<Range> buffers;
uintptr_t host_stack, lib_lo, lib_hi, lib_base, lib_data_lo, lib_data_hi;  // lib_data: what may be written

struct Defect {
  Kind kind;
  uint64_t pc = 0, other_pc = 0;  // offsets in the library, 0: none
  std::string file;               // where there is no pc
  int line = 0;
  uint64_t count = 0;
  std::string text;
};
std::vector<Defect> defects;
std::unordered_map<uint64_t, size_t> defect_index;
struct Bank {
  uint32_t pc;
  bool store;
  uint64_t requests, wavefronts, ideal;
};
std::vector<Bank> banks;
std::vector<uint32_t> bank_slots;  // open addressing by pc: index + 1 into banks
struct Launched {
  std::string kernel;
  dim3 grid, block;
  size_t bytes;
  int rc;
  std::string symbol;     // of the kernel's instance, mangled; empty where it is not known
  std::string arguments;  // as rows have them: a field each
};
std::vector<Launched> launches;
std::string noted_arguments;  // of the launch that comes next

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
uint64_t rnd() {
  rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
  return rng;
}
// Of the call that returns to pc: 1 less is inside it.
uint32_t offset_of(Pc pc) { return pc ? uint32_t((uintptr_t)pc - lib_base - 1) : 0; }

}  // namespace
}  // namespace cpucuda
