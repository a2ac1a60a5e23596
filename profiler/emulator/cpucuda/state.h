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
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#define CPUCUDA_RUNTIME 1
#include "include/cuda_hopper.h"
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
  X(CP_ASYNC_NOT_WAITED, "cp.async-not-waited")        \
  X(CP_ASYNC_LEFT_PENDING, "cp.async-left-pending")    \
  X(ASYNC_NOT_WAITED, "async-not-waited")              \
  X(ASYNC_LEFT_PENDING, "async-left-pending")          \
  X(PROXY_FENCE_MISSING, "proxy-fence-missing")        \
  X(WGMMA_FENCE_MISSING, "wgmma-fence-missing")        \
  X(WGMMA_NOT_WAITED, "wgmma-not-waited")              \
  X(MBARRIER_MISUSE, "mbarrier-misuse")                \
  X(EXPECT_TX_MISMATCH, "expect-tx-mismatch")          \
  X(MISALIGNED_TILE, "misaligned-tile")                \
  X(PEER_NOT_STARTED, "peer-not-started")              \
  X(PEER_EXITED, "peer-exited")                        \
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

// When what TMA and wgmma do takes effect.
enum Landing { LATE, ROWS, AT_ONCE };  // when nothing else can run; row by row in between; where it is issued

struct Config {
  bool random = false;                                 // false: warps and lanes in order
  double preempt = 0;                                  // chance of a switch at a memory access
  Landing landing = LATE;
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
// A thread that waits in a collective is in RUNS: its warp knows. WAITS: for what waiting.h knows of.
enum State { RUNS, AT_BARRIER, WAITS, DONE };
enum What { AN_MBARRIER, A_NAMED_BARRIER, A_CLUSTER_BARRIER, A_BULK_GROUP, A_WGMMA_GROUP, REGISTERS };

// What a thread knows to have happened: of every agent, up to which time. See clocks.h.
struct Clock {
  std::vector<uint32_t> known;    // by agent: threads first, then what works on its own
  std::vector<uint32_t> proxied;  // by thread: what of its writes the async proxy sees too
  std::vector<uint32_t> covered;  // by thread: what of its writes a __threadfence has covered
};
struct Registers {  // that products own until they are waited for
  uintptr_t lo, hi;
  uint32_t product;  // the last one that uses them
  bool is_operand;
};
struct Block;
struct Fiber {  // what every switch and access reads comes first, in as few cache lines as there can be
  void* sp;
  uintptr_t stack;  // lowest address
  Block* cta;
  int id, warp, lane;
  State state;
  Pc pc;        // where it waits
  uint3 index;  // threadIdx
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

  // --- of a source that includes hopper.cuh
  const void* waits_for;  // in state WAITS
  What what;
  uint32_t wanted;        // of it: a parity, or registers
  Clock clock, at_fence;  // now, and at the last wgmma_fence
  uint32_t saw_start;     // when it has first waited for the cluster's barrier, behind which all blocks run
  bool cluster_waits;     // has arrived at the cluster's barrier and not waited;
  uint32_t cluster_generation;  // in which of its rounds
  // TMA stores of this thread: their times, how many there were at each commit, how many were waited for.
  // Of two agents, store_agent and the next one: it reads shared memory, and that writes global memory.
  std::vector<uint32_t> store_times, store_groups;
  uint32_t stores_waited;
  int store_agent;        // 0: none yet
  Pc store_pc;
  int registers;          // that it may use
  Pc registers_pc;        // of the last change,
  int register_changes;   // and how many there were
  // wgmma: products issued, how many at each commit, and the registers they own.
  uint32_t products;
  std::vector<uint32_t> product_groups;
  Pc product_pc;                         // of the last
  std::vector<Registers> in_flight;
  uintptr_t in_flight_lo, in_flight_hi;  // around all of these
  uint32_t fence_epoch;                  // counts its fences; 4 bytes of stack have that of their last use
  bool has_fenced;
  uint32_t* touched;
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
//
// Where clocks are kept (clocks.h) any agent may have written, and all readers with no order to one another
// are remembered: a set by its number.
struct Cell {
  uint32_t written;  // when; < block_start: never in this block
  union {
    uint32_t read;     // when
    uint32_t readers;  // clocks: the number of a set
  };
  union {
    uint32_t other_read;  // when
    uint32_t agent;       // clocks: that wrote
  };
  uint16_t writer : 10, atomic : 1, pending : 1, async : 1;  // async: by the async proxy
  // many: other lanes of the reader's warp have read too, unordered with it
  uint16_t reader : 10, many : 1, other_warp : 5;
};
static_assert(sizeof(Cell) == 16, "two cells a 32-byte load");

size_t smem_bytes;
// A granule is 16 bytes until a kernel touches less within the same KB (then 8, 4, 2 or 1), for this launch
// and those after it: most accesses cost one cell. The cells of a region start at its first byte's place and
// fill as much of it as they need.
constexpr size_t REGION = 1 << 10;
uint8_t granule_shift[SMEM_CAP / REGION];
uint32_t now = 1, block_start = 1;

struct Mbarrier;
struct Named {  // a barrier 1 .. 15
  int expected, arrived;
  uint32_t generation;
  Clock gathered, done;
  Pc pc;
  uint32_t came[MAX_THREADS];  // by thread: the round it came to last, from 1,
  uint32_t came_at[MAX_THREADS];  // and when
};
// A block that runs: alone, or with the others of its cluster.
struct Block {
  unsigned char* smem;
  Cell* shadow;
  uint32_t *written_at, *read_at;  // code offsets of the last write and read
  uint32_t barrier;                // time of the last one of the block
  uint3 id;
  int rank, first_warp;  // in the cluster
  int live, at_barrier;
  unsigned ready_warps;  // a bit each
  Named named[16];
  std::vector<uint16_t> mbarrier_at;  // by 8 bytes of shared memory: index + 1 into mbarriers, 0: none
  int pool;                           // registers that were released
};
constexpr int MAX_CLUSTER = 8;  // blocks: what every GPU with clusters runs
Block blocks[MAX_CLUSTER];
Block* cta;  // the running thread's; while it reaches into another one's memory, that one

Fiber* fibers;  // of all blocks of the cluster: as many for each as its warps have lanes
Warp* warps;
int fiber_room;
uint32_t* touched;  // of the fibers' stacks: 4 bytes are a register
dim3 block_dim, grid_dim, cluster_dim;
Fiber* cur;  // null: host code runs
void* main_sp;
#if CPUCUDA_UCONTEXT
ucontext_t main_uc;
#endif
int nthreads, nwarps, nblocks, live, running_warp;  // of a block; of the cluster: its blocks, live threads
Block* running;
unsigned linger;      // a warp is left for another one time in linger + 1
bool aborted, quiet;  // quiet: what runs is the emulator's own
int blocks_an_sm;     // that the launch bound promises
bool clocks;          // whether clocks are kept: hopper.cuh is in the source
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
