// What Hopper (sm_90a) adds: mbarriers, TMA, wgmma, register reallocation, named barriers, fences between the
// proxies, clusters; each with its PTX and with the meaning it has on the CPU.
//
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate" (descriptors, canonical layouts,
//   fragments), "mbarrier", "cp.async.bulk.tensor", "Tensor swizzling modes"; CUDA driver API,
//   cuTensorMapEncodeTiled. Layouts agree with CuTe's at every place that was compared.
// Limit: the CPU's meaning was written from the ISA, not measured; a first run on a GPU compares the two.
#pragma once
#include "ptx.cuh"

constexpr int WARPGROUP = 128;  // threads: four warps, the first of a rank that is a multiple of 4

// --- Matrix descriptors: where wgmma finds an operand in shared memory.

// How 16-byte chunks are permuted within a tile. The numbers are the descriptor's; a tensor map counts the
// other way. A tile starts on the boundary of the pattern: 1024 bytes for 128B, 512 for 64B, 256 for 32B.
enum Swizzle : uint64_t { SWIZZLE_NONE = 0, SWIZZLE_128B = 1, SWIZZLE_64B = 2, SWIZZLE_32B = 3 };

// A byte count or a byte address as a descriptor holds it. Descriptors are advanced by adding it.
__host__ __device__ constexpr uint64_t descriptor_field(uint64_t bytes) { return (bytes & 0x3FFFF) >> 4; }

// K-major (TRANS 0), swizzled: `stride` bytes lie between groups of 8 rows, `leading` is not read. MN-major
// (TRANS 1), swizzled: `stride` between groups of 8 k, `leading` between the columns that one row of the
// pattern holds (64 halves for 128B) and the next ones. Not swizzled: PTX ISA, "Leading dimension byte
// offset".
__host__ __device__ constexpr uint64_t matrix_descriptor(uint32_t address, uint32_t leading, uint32_t stride,
                                                         Swizzle swizzle) {
  return descriptor_field(address) | descriptor_field(leading) << 16 | descriptor_field(stride) << 32 |
         uint64_t(swizzle) << 62;
}

// Where byte `offset` of a tile lies, from the tile's first byte, in the 128B pattern. For a tile of rows of
// 128 bytes: chunk c of row r is at r * 128 + (c ^ r % 8) * 16.
__host__ __device__ constexpr uint32_t swizzle_128b(uint32_t offset) {
  return offset ^ ((offset >> 7 & 7) << 4);
}

__host__ __device__ constexpr bool is_register_count(int n) { return n >= 24 && n <= 256 && n % 8 == 0; }

// How far an arrival or a wait orders memory: among the threads of its block, or of its cluster.
enum Scope { SCOPE_CTA, SCOPE_CLUSTER };

// Bytes of a box as the mbarrier counts them, whether it lies within the tensor or not.
__host__ __device__ constexpr uint32_t box_bytes(int columns, int rows) { return columns * rows * 2; }

#ifdef CPUCUDA

#include <cuda_hopper.h>

#define TILE_SMEM(name) DYN_SMEM(name)
__device__ __forceinline__ uint32_t shared_address(const void* p) { return cpucuda::shared_address(p); }
__device__ __forceinline__ void mbarrier_init(uint64_t* bar, uint32_t arrivals) {
  cpucuda::mbarrier_init(bar, arrivals);
}
__device__ __forceinline__ void mbarrier_invalidate(uint64_t* bar) { cpucuda::mbarrier_invalidate(bar); }
__device__ __forceinline__ void fence_mbarrier_init() { cpucuda::fence_mbarrier_init(); }
__device__ __forceinline__ void mbarrier_arrive(uint64_t* bar) { cpucuda::mbarrier_arrive(bar, -1); }
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint64_t* bar, uint32_t bytes) {
  cpucuda::mbarrier_arrive(bar, bytes);
}
__device__ __forceinline__ void mbarrier_expect_tx(uint64_t* bar, uint32_t bytes) {
  cpucuda::mbarrier_expect_tx(bar, bytes);
}
template <Scope SCOPE = SCOPE_CTA>
__device__ __forceinline__ void mbarrier_wait(uint64_t* bar, uint32_t parity) {
  cpucuda::mbarrier_wait(bar, parity, SCOPE == SCOPE_CLUSTER);
}
__device__ __forceinline__ void fence_proxy_async() { cpucuda::fence_proxy_async(); }
__device__ __forceinline__ void tma_prefetch(const TensorMap* map) { cpucuda::tma_prefetch(map); }
__device__ __forceinline__ void tma_load(void* dst, const TensorMap* map, uint64_t* bar, int x, int y,
                                         int z) {
  cpucuda::tma_load(dst, map, bar, x, y, z, 0);
}
__device__ __forceinline__ void tma_load_multicast(void* dst, const TensorMap* map, uint64_t* bar, int x,
                                                   int y, int z, uint16_t ranks) {
  cpucuda::tma_load(dst, map, bar, x, y, z, ranks);
}
__device__ __forceinline__ void tma_store(const TensorMap* map, const void* src, int x, int y, int z) {
  cpucuda::tma_store(map, src, x, y, z);
}
__device__ __forceinline__ void tma_store_commit() { cpucuda::tma_store_commit(); }
template <int KEEP = 0>
__device__ __forceinline__ void tma_store_wait_read() {
  cpucuda::tma_store_wait_read(KEEP);
}
template <int KEEP = 0>
__device__ __forceinline__ void tma_store_wait() {
  cpucuda::tma_store_wait(KEEP);
}
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  cpucuda::named_barrier(id, threads, true);
}
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  cpucuda::named_barrier(id, threads, false);
}
template <int N>
__device__ __forceinline__ void registers_release() {
  static_assert(is_register_count(N));
  cpucuda::set_registers(N, false);
}
template <int N>
__device__ __forceinline__ void registers_claim() {
  static_assert(is_register_count(N));
  cpucuda::set_registers(N, true);
}
template <class... Registers>
__device__ __forceinline__ void wgmma_fence(Registers&...) {
  cpucuda::wgmma_fence();
}
__device__ __forceinline__ void wgmma_commit() { cpucuda::wgmma_commit(); }
template <int KEEP, class... Registers>
__device__ __forceinline__ void wgmma_wait(Registers&...) {
  cpucuda::wgmma_wait(KEEP);
}
template <int TRANS_B, int R>
__device__ __forceinline__ void wgmma_m64k16(float (&d)[R], uint64_t a, uint64_t b, int accumulate) {
  cpucuda::wgmma(d, 2 * R, nullptr, a, b, accumulate, TRANS_B);
}
template <int TRANS_B, int R>
__device__ __forceinline__ void wgmma_m64k16(float (&d)[R], const uint32_t (&a)[4], uint64_t b,
                                             int accumulate) {
  cpucuda::wgmma(d, 2 * R, a, 0, b, accumulate, TRANS_B);
}
__device__ __forceinline__ uint32_t cluster_rank() { return cpucuda::cluster_rank(); }
__device__ __forceinline__ uint32_t cluster_size() { return cpucuda::cluster_size(); }
__device__ __forceinline__ void cluster_arrive() { cpucuda::cluster_arrive(true); }
__device__ __forceinline__ void cluster_arrive_relaxed() { cpucuda::cluster_arrive(false); }
__device__ __forceinline__ void cluster_wait() { cpucuda::cluster_wait(); }
__device__ __forceinline__ uint32_t address_at(const void* p, uint32_t rank) {
  return cpucuda::address_at(p, rank);
}
CPUCUDA_RAW __forceinline__ float remote_load(uint32_t address) {
  float value;
  cpucuda::remote_load(&value, address, sizeof value);
  return value;
}
CPUCUDA_RAW __forceinline__ float4 remote_load4(uint32_t address) {
  float4 value;
  cpucuda::remote_load(&value, address, sizeof value);
  return value;
}
__device__ __forceinline__ void remote_store(uint32_t address, float value) {
  cpucuda::remote_store(address, &value, sizeof value);
}
__device__ __forceinline__ void remote_store4(uint32_t address, float4 value) {
  cpucuda::remote_store(address, &value, sizeof value);
}
__device__ __forceinline__ void remote_store_async(uint32_t address, uint32_t bar, float value) {
  cpucuda::remote_store_async(address, bar, &value, sizeof value);
}
__device__ __forceinline__ void remote_store4_async(uint32_t address, uint32_t bar, float4 value) {
  cpucuda::remote_store_async(address, bar, &value, sizeof value);
}
__device__ __forceinline__ void remote_copy_async(uint32_t address, uint32_t bar, const void* src,
                                                  uint32_t bytes) {
  cpucuda::remote_copy_async(address, bar, src, bytes);
}
template <Scope SCOPE = SCOPE_CLUSTER>
__device__ __forceinline__ void remote_arrive(uint32_t bar) {
  cpucuda::remote_arrive(bar, SCOPE == SCOPE_CLUSTER);
}
inline int make_tensor_map(TensorMap* map, const void* base, int columns, int rows, int matrices,
                           int box_columns, int box_rows, Swizzle swizzle = SWIZZLE_128B) {
  return cpucuda::make_tensor_map(map, base, columns, rows, matrices, box_columns, box_rows, swizzle);
}
template <class Kernel>
inline int refused_here(Kernel*) {
  return 0;
}
#define LAUNCH_CLUSTER(kernel, cluster, grid, block, smem, stream, ...) \
  (cpucuda::of_clusters(cluster), LAUNCH(kernel, grid, block, smem, stream, __VA_ARGS__))

#else

#include <cuda.h>

using TensorMap = CUtensorMap;  // a kernel takes it as `const __grid_constant__ TensorMap`

// Dynamic shared memory for swizzled tiles: it starts where the pattern of 128B does.
#define TILE_SMEM(name) extern __shared__ __align__(1024) unsigned char name[]

// The address in the shared window of the own block, as descriptors and PTX have it.
__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

// --- mbarriers: arrivals and bytes that a phase waits for

__device__ __forceinline__ void mbarrier_init(uint64_t* bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(arrivals)
               : "memory");
}
// Ends its use: the memory may then hold other data.
__device__ __forceinline__ void mbarrier_invalidate(uint64_t* bar) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(bar)) : "memory");
}
// Makes this thread's inits visible to the cluster and to TMA; a barrier must then order them before any use.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void mbarrier_arrive(uint64_t* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}
// The phase also waits for so many bytes; then one arrival.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes)
               : "memory");
}
// The phase also waits for so many bytes; no arrival.
__device__ __forceinline__ void mbarrier_expect_tx(uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)),
               "r"(bytes)
               : "memory");
}
// Waits until the phase of this parity is complete: 0 for the first, third, ... one. A barrier whose first
// phase is under way counts as having completed one of parity 1.
template <Scope SCOPE = SCOPE_CTA>
__device__ __forceinline__ void mbarrier_wait(uint64_t* bar, uint32_t parity) {
  if (SCOPE == SCOPE_CTA)
    asm volatile(
        "{\n.reg .pred done;\n"
        "again_%=:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again_%=;\n}" ::"r"(
            shared_address(bar)),
        "r"(parity)
        : "memory");
  else
    asm volatile(
        "{\n.reg .pred done;\n"
        "again_%=:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again_%=;\n}" ::"r"(shared_address(bar)),
        "r"(parity)
        : "memory");
}

// --- the two proxies: loads and stores of threads are in the generic one, TMA and wgmma in the async one

// By every thread that wrote, before the barrier that hands its writes over to TMA or wgmma.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// --- TMA: boxes of a tensor [matrices][rows][columns] of halves, x in columns, y in rows, z in matrices

__device__ __forceinline__ void tma_prefetch(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// Starts the copy of a box to shared memory; what lies past an end of the tensor arrives as 0. The bytes of
// the whole box are taken from what the mbarrier's phase waits for.
__device__ __forceinline__ void tma_load(void* dst, const TensorMap* map, uint64_t* bar, int x, int y,
                                         int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(dst)),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(bar))
      : "memory");
}
// The same to the same place of each block of the cluster whose bit is set, and to its own mbarrier there.
__device__ __forceinline__ void tma_load_multicast(void* dst, const TensorMap* map, uint64_t* bar, int x,
                                                   int y, int z, uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(dst)),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(bar)), "h"(ranks)
      : "memory");
}
// Starts the copy of a box from shared memory; what lies past an end of the tensor is left out.
__device__ __forceinline__ void tma_store(const TensorMap* map, const void* src, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map),
               "r"(x), "r"(y), "r"(z), "r"(shared_address(src))
               : "memory");
}
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// All but the last KEEP groups of this thread have read their source: it may be reused, or the block may end.
template <int KEEP = 0>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(KEEP) : "memory");
}
// All but the last KEEP groups of this thread are complete: this thread may read what they wrote.
template <int KEEP = 0>
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(KEEP) : "memory");
}

// --- named barriers 1 to 15 (0 is that of __syncthreads), of a multiple of 32 threads

// An id that is known when compiling takes one of the 16 barriers; one that is not takes all of them.
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// --- registers a thread may use: 24 to 256 in steps of 8, changed by whole warpgroups

template <int N>
__device__ __forceinline__ void registers_release() {
  static_assert(is_register_count(N));
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
// Waits until the others have released enough of them.
template <int N>
__device__ __forceinline__ void registers_claim() {
  static_assert(is_register_count(N));
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

// --- wgmma: products of a whole warpgroup, which run while its threads go on

// To the compiler a product has changed its accumulators once it is issued: nothing but this keeps it from
// moving their use to before the wait, or a store to them to behind the fence.
template <int R>
__device__ __forceinline__ void hold_registers(float (&d)[R]) {
#pragma unroll
  for (int i = 0; i < R; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int R>
__device__ __forceinline__ void hold_registers(uint32_t (&a)[R]) {
#pragma unroll
  for (int i = 0; i < R; ++i) asm volatile("" : "+r"(a[i])::"memory");
}
template <class T, int M, int R>
__device__ __forceinline__ void hold_registers(T (&rows)[M][R]) {
#pragma unroll
  for (int i = 0; i < M; ++i) hold_registers(rows[i]);
}

// By the whole warpgroup: after a use of registers that a product is about to use, and before the first one.
// Name the arrays whose values the products take or change.
template <class... Registers>
__device__ __forceinline__ void wgmma_fence(Registers&... registers) {
  (hold_registers(registers), ...);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// The products since the last call are a group.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until all groups but the last KEEP are complete. Until then their registers belong to the products:
// accumulators and A alike. Name the arrays that are used next.
template <int KEEP, class... Registers>
__device__ __forceinline__ void wgmma_wait(Registers&... registers) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(KEEP) : "memory");
  (hold_registers(registers), ...);
}

// wgmma_m64k16<TRANS_B>(d, a, b, accumulate): d [64][N] += a [64][16] b [16][N], or = where accumulate is 0;
// fp16 to fp32, N = 2 R. `a` is a K-major tile's descriptor, or four registers; `b` a descriptor, K-major
// ([N][16], TRANS_B 0) or N-major ([16][N], TRANS_B 1).
//
// Thread t of the warpgroup has in d[i]: row t/32*16 + t%32/4 + 8*(i/2%2), column i/4*8 + t%4*2 + i%2; and in
// half i of the four registers of A: the same row, k = t%4*2 + i%2 + 8*(i/4). So 8 accumulators in a row are,
// packed, the A of 16 keys.
#define WGMMA_TEN(t) \
  "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define WGMMA_OUT4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WGMMA_OUT16(i) WGMMA_OUT4(i), WGMMA_OUT4(i + 4), WGMMA_OUT4(i + 8), WGMMA_OUT4(i + 12)
// R accumulators, by their names %0 .. and as operands; then the numbers of the seven operands that follow.
#define WGMMA_FORMS(N, R, NAMES, OUTPUTS, O0, O1, O2, O3, O4, O5, O6)                                        \
  template <int TRANS_B>                                                                                     \
  __device__ __forceinline__ void wgmma_m64k16(float (&d)[R], uint64_t a, uint64_t b, int accumulate) {      \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" O2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N        \
                 "k16.f32.f16.f16 {" NAMES "}, %" O0 ", %" O1 ", p, 1, 1, 0, %" O3 ";\n}"                    \
                 : OUTPUTS                                                                                   \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(TRANS_B));                                           \
  }                                                                                                          \
  template <int TRANS_B>                                                                                     \
  __device__ __forceinline__ void wgmma_m64k16(float (&d)[R], const uint32_t (&a)[4], uint64_t b,            \
                                               int accumulate) {                                             \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" O5 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N        \
                 "k16.f32.f16.f16 {" NAMES "}, {%" O0 ", %" O1 ", %" O2 ", %" O3 "}, %" O4 ", p, 1, 1, %" O6 \
                 ";\n}"                                                                                      \
                 : OUTPUTS                                                                                   \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TRANS_B));       \
  }
#define WGMMA_SIX(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5"
#define WGMMA_TWO(t) "%" #t "0, %" #t "1"
#define WGMMA_FOUR(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3"
#define WGMMA_EIGHT(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7"
#define WGMMA_30 WGMMA_TEN() WGMMA_TEN(1) WGMMA_TEN(2)
#define WGMMA_60 WGMMA_30 WGMMA_TEN(3) WGMMA_TEN(4) WGMMA_TEN(5)
#define WGMMA_90 WGMMA_60 WGMMA_TEN(6) WGMMA_TEN(7) WGMMA_TEN(8)
#define WGMMA_120 WGMMA_90 WGMMA_TEN(9) WGMMA_TEN(10) WGMMA_TEN(11)
#define WGMMA_OUT32(i) WGMMA_OUT16(i), WGMMA_OUT16(i + 16)
#define WGMMA_OUT64(i) WGMMA_OUT32(i), WGMMA_OUT32(i + 32)
#define WGMMA_OUT48 WGMMA_OUT32(0), WGMMA_OUT16(32)
#define WGMMA_OUT96 WGMMA_OUT64(0), WGMMA_OUT32(64)
#define WGMMA_OUT128 WGMMA_OUT64(0), WGMMA_OUT64(64)
WGMMA_FORMS(32, 16, WGMMA_TEN() WGMMA_SIX(1), WGMMA_OUT16(0), "16", "17", "18", "19", "20", "21", "22")
WGMMA_FORMS(64, 32, WGMMA_30 WGMMA_TWO(3), WGMMA_OUT32(0), "32", "33", "34", "35", "36", "37", "38")
WGMMA_FORMS(96, 48, WGMMA_30 WGMMA_TEN(3) WGMMA_EIGHT(4), WGMMA_OUT48, "48", "49", "50", "51", "52", "53",
            "54")
WGMMA_FORMS(128, 64, WGMMA_60 WGMMA_FOUR(6), WGMMA_OUT64(0), "64", "65", "66", "67", "68", "69", "70")
WGMMA_FORMS(192, 96, WGMMA_90 WGMMA_SIX(9), WGMMA_OUT96, "96", "97", "98", "99", "100", "101", "102")
WGMMA_FORMS(256, 128, WGMMA_120 WGMMA_EIGHT(12), WGMMA_OUT128, "128", "129", "130", "131", "132", "133",
            "134")
#undef WGMMA_FORMS

// --- clusters: blocks that run together and reach each other's shared memory

__device__ __forceinline__ uint32_t cluster_rank() {  // of this block
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ uint32_t cluster_size() {  // blocks
  uint32_t size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}
// The barrier of all threads of the cluster, in two steps. What a thread did before cluster_arrive comes
// before what others do after their wait; relaxed: only inits that fence_mbarrier_init has made visible do.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Where the same place lies in the shared memory of a block of the cluster: an address for the functions
// below. No block may be reached before it runs (a barrier of the cluster says so), nor once it has ended.
__device__ __forceinline__ uint32_t address_at(const void* p, uint32_t rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(p)), "r"(rank));
  return address;
}
__device__ __forceinline__ float remote_load(uint32_t address) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}
__device__ __forceinline__ float4 remote_load4(uint32_t address) {
  float4 value;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(address)
               : "memory");
  return value;
}
__device__ __forceinline__ void remote_store(uint32_t address, float value) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}
__device__ __forceinline__ void remote_store4(uint32_t address, float4 value) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(value.x), "f"(value.y),
               "f"(value.z), "f"(value.w)
               : "memory");
}
// Stores on its own time: whoever waits for the mbarrier beside it, which counts the bytes, may read them.
__device__ __forceinline__ void remote_store_async(uint32_t address, uint32_t bar, float value) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address),
      "r"(__float_as_uint(value)), "r"(bar)
      : "memory");
}
__device__ __forceinline__ void remote_store4_async(uint32_t address, uint32_t bar, float4 value) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
          address),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(bar)
      : "memory");
}
// A copy by the async proxy from the own shared memory; bytes and addresses are multiples of 16.
__device__ __forceinline__ void remote_copy_async(uint32_t address, uint32_t bar, const void* src,
                                                  uint32_t bytes) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          address),
      "r"(shared_address(src)), "r"(bytes), "r"(bar)
      : "memory");
}
// An arrival at another block's mbarrier. Where it hands over data or the right to overwrite some, both ends
// need the cluster's scope.
template <Scope SCOPE = SCOPE_CLUSTER>
__device__ __forceinline__ void remote_arrive(uint32_t bar) {
  if (SCOPE == SCOPE_CLUSTER)
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
  else
    asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

// --- what the host does

// Why this GPU cannot run a kernel: 209 (cudaErrorNoKernelImageForDevice) on all that are not of sm_90a; 0
// where it can. Asked first: a map that the driver of another GPU refuses would pass for a wrong argument.
template <class Kernel>
inline int refused_here(Kernel* kernel) {
  cudaFuncAttributes attributes;
  cudaGetLastError();  // forgets an earlier call's error
  return (int)cudaFuncGetAttributes(&attributes, (const void*)kernel);
}

// The map of a tensor [matrices][rows][columns] of halves, of which boxes [box_rows][box_columns] are copied;
// a row of a box is a row of the swizzle's pattern. Returns a cudaError_t. The driver's function is asked of
// the runtime: nothing is linked with libcuda.
inline int make_tensor_map(TensorMap* map, const void* base, int columns, int rows, int matrices,
                           int box_columns, int box_rows, Swizzle swizzle = SWIZZLE_128B) {
  static decltype(&cuTensorMapEncodeTiled) encode = nullptr;
  if (swizzle != SWIZZLE_NONE && box_columns * 2 != 256 >> (int)swizzle) return (int)cudaErrorInvalidValue;
  if (!encode) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    if (error != cudaSuccess) return (int)error;
    if (result != cudaDriverEntryPointSuccess || !found) return (int)cudaErrorNotSupported;
    encode = (decltype(encode))found;
  }
  const CUtensorMapSwizzle pattern = swizzle == SWIZZLE_128B  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : swizzle == SWIZZLE_64B ? CU_TENSOR_MAP_SWIZZLE_64B
                                     : swizzle == SWIZZLE_32B ? CU_TENSOR_MAP_SWIZZLE_32B
                                                              : CU_TENSOR_MAP_SWIZZLE_NONE;
  const cuuint64_t size[3] = {(cuuint64_t)columns, (cuuint64_t)rows, (cuuint64_t)matrices};
  const cuuint64_t pitch[2] = {(cuuint64_t)columns * 2, (cuuint64_t)columns * 2 * (cuuint64_t)rows};  // bytes
  const cuuint32_t box[3] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows, 1}, step[3] = {1, 1, 1};
  const CUresult result = encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, const_cast<void*>(base), size,
                                 pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, pattern,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? 0 : (int)cudaErrorInvalidValue;
}

// As launch() does, in clusters of so many blocks: the grid is a multiple of them.
template <class... P>
inline int launch_cluster(void (*kernel)(P...), dim3 cluster, dim3 grid, dim3 block, size_t smem,
                          void* stream, P... args) {
  cudaGetLastError();  // forgets an earlier call's error, which would be taken for this launch's
  const cudaError_t refused =
      cudaFuncSetAttribute((const void*)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem);
  if (refused != cudaSuccess) return (int)refused;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x;
  attribute.val.clusterDim.y = cluster.y;
  attribute.val.clusterDim.z = cluster.z;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = smem;
  config.stream = (cudaStream_t)stream, config.attrs = &attribute, config.numAttrs = 1;
  return (int)cudaLaunchKernelEx(&config, kernel, args...);
}
#define LAUNCH_CLUSTER(kernel, cluster, grid, block, smem, stream, ...) \
  launch_cluster(kernel, cluster, grid, block, smem, stream, __VA_ARGS__)

#endif
