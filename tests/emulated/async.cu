// What Hopper does by itself, in small kernels: each right with bug 0, and with one mistake for every other number.
// `// caught here: kernel_bug kind ...` marks the line at which every schedule must report it. Of the 64 floats of
// out every one must be 1. in holds 0 .. 63: as halves, 16 rows of 8.
#include "hopper.cuh"

#define S(type) reinterpret_cast<type*>(smem)
#define HEAD                                              \
  TILE_SMEM(smem);                                        \
  [[maybe_unused]] uint64_t* const bars = S(uint64_t);    \
  [[maybe_unused]] unsigned char* const tile = smem + 1024; \
  [[maybe_unused]] const int t = threadIdx.x, warp = t / 32, lane = t % 32;
struct Maps {
  TensorMap in, out, beyond;
};
#define KERNEL(name) \
  __global__ void name([[maybe_unused]] const __grid_constant__ Maps maps, [[maybe_unused]] float* out, \
                       [[maybe_unused]] int bug)
constexpr int BYTES = 256;  // of the tensor, and of a box of all of it

// --- loads

KERNEL(load) {
  HEAD if (t == 0) {
    mbarrier_init(bars, 1);
    if (bug == 9) mbarrier_init(bars, 1);  // caught here: load_9 mbarrier-misuse
    if (bug != 5) fence_mbarrier_init();
  }
  if (bug != 11) __syncthreads();
  if (bug == 17) {
    out[t] = 1;
    __syncthreads();
  }
  if (t == 32) {
    mbarrier_arrive_expect_tx(bars, bug == 3 ? BYTES + 16 : bug == 4 ? BYTES - 128 : BYTES);  // caught here: load_11 race mbarrier-misuse
    if (bug == 10) mbarrier_arrive(bars);  // caught here: load_10 mbarrier-misuse
    tma_prefetch(&maps.in);
    unsigned char* const to = bug == 6 ? tile + 64 : bug == 7 ? smem + (16 << 10) - 128 : tile;
    const TensorMap* const from = bug == 14 ? &maps.beyond : bug == 17 ? &maps.out : bug == 18 ? nullptr : &maps.in;
    tma_load(to, from, bars, 0, bug == 14 ? 16 : 0, 0);  // caught here: load_17 proxy-fence-missing; load_18 misuse; load_4 expect-tx-mismatch; load_5 proxy-fence-missing; load_6 misaligned; load_7 out-of-bounds-shared; load_12 async-left-pending; load_14 out-of-bounds-global
  }
  if (bug == 8 && t == 5) out[0] = float(bars[0]);  // caught here: load_8 mbarrier-misuse
  if (bug == 12) {
    out[t] = 1;
    return;
  }
  if (bug == 13 && t == 7) {
    __syncwarp(1u << lane);
    reinterpret_cast<volatile float*>(tile)[3] = 3;  // caught here: load_13 async-not-waited race
  }
  if (bug == 15) mbarrier_wait(bars + 1, 0);  // caught here: load_15 mbarrier-misuse
  if (bug != 1) mbarrier_wait(bars, bug == 2 ? 1 : bug == 16 ? 2 : 0);  // caught here: load_3 deadlock; load_11 race mbarrier-misuse; load_16 mbarrier-misuse
  if (bug == 19 && t == 0) mbarrier_invalidate(bars);  // caught here: load_19 race
  out[t] = reinterpret_cast<float*>(tile)[t] == t;  // caught here: load_1 async-not-waited race uninitialised; load_2 async-not-waited race uninitialised; load_13 async-not-waited race
}
// What a wait tells a thread a barrier passes on.
KERNEL(waits_for_all) {
  HEAD if (t == 0) {
    mbarrier_init(bars, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(bars, BYTES);
    tma_load(tile, &maps.in, bars, 0, 0, 0);
    mbarrier_wait(bars, 0);
  }
  if (bug != 1) __syncthreads();
  if (bug == 1 && warp == 1) __syncwarp();
  if (t == 63 && bug == 0) mbarrier_invalidate(bars);  // behind the last use of it
  out[t] = reinterpret_cast<float*>(tile)[t] == t;  // caught here: waits_for_all_1 async-not-waited race uninitialised
}
// Past an end of the tensor zeros arrive, and all the bytes of the box.
KERNEL(clipped_load) {
  HEAD if (t == 0) {
    mbarrier_init(bars, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(bars, 3 * BYTES);
    tma_load(tile, &maps.in, bars, 0, 8, 0);
    tma_load(tile + BYTES, &maps.in, bars, 0, -8, 0);
    tma_load(tile + 2 * BYTES, &maps.in, bars, 0, 0, 1);
  }
  __syncthreads();
  mbarrier_wait(bars, 0);
  const float* const x = reinterpret_cast<float*>(tile);
  out[t] = x[t] == (t < 32 ? t + 32 : 0) && x[64 + t] == (t < 32 ? 0 : t - 32) && x[128 + t] == 0;
}
// Warp 0 fills two stages in turn, warp 1 empties them.
KERNEL(ring) {
  HEAD uint64_t *const full = bars, *const empty = bars + 2;
  if (t == 0) {
    for (int s = 0; s < 2; ++s) mbarrier_init(full + s, 1), mbarrier_init(empty + s, bug == 3 ? 1 : 32);
    fence_mbarrier_init();
  }
  __syncthreads();
  constexpr int ROUNDS = 6;
  if (t == 0)
    for (int i = 0; i < ROUNDS; ++i) {
      const int s = i % 2;
      if (i >= 2 && bug != 1) mbarrier_wait(empty + s, bug == 4 ? i / 2 & 1 : (i / 2 - 1) & 1);  // caught here: ring_4 deadlock async-not-waited race
      mbarrier_arrive_expect_tx(full + s, BYTES);  // caught here: ring_1 mbarrier-misuse
      tma_load(tile + s * BYTES, &maps.in, full + s, 0, i % 3, 0);  // caught here: ring_1 async-not-waited race; ring_2 race; ring_4 async-not-waited race
    }
  if (warp == 1) {
    bool right = true;
    for (int i = 0; i < ROUNDS; ++i) {
      const int s = i % 2;
      mbarrier_wait(full + s, i / 2 & 1);
      if (bug == 2) mbarrier_arrive(empty + s);
      right &= reinterpret_cast<float*>(tile + s * BYTES)[lane] == lane + i % 3 * 4;  // caught here: ring_2 async-not-waited race
      if (bug != 2) mbarrier_arrive(empty + s);  // caught here: ring_3 mbarrier-misuse
    }
    out[lane] = right, out[32 + lane] = right;
  }
}
// An mbarrier hands over what threads wrote.
KERNEL(handed_over) {
  HEAD if (t == 0) mbarrier_init(bars, bug == 2 ? 31 : 32);
  __syncthreads();
  if (warp == 0) {
    if (bug == 1) mbarrier_arrive(bars);
    reinterpret_cast<float*>(tile)[lane] = 1;
    if (bug != 1) mbarrier_arrive(bars);  // caught here: handed_over_2 mbarrier-misuse
    out[lane] = 1;
  } else {
    mbarrier_wait(bars, 0);
    out[t] = reinterpret_cast<float*>(tile)[lane ^ 1];  // caught here: handed_over_1 race uninitialised; handed_over_2 race
  }
}

// --- stores

KERNEL(store) {
  HEAD reinterpret_cast<float*>(tile)[t] = 1;  // caught here: store_4 race
  if (bug != 1) fence_proxy_async();
  if (bug != 4) __syncthreads();
  if (t == 0) {
    tma_store(&maps.out, tile, 0, 0, 0);  // caught here: store_1 proxy-fence-missing; store_2 async-left-pending; store_3 async-left-pending; store_4 race uninitialised
    if (bug != 3) tma_store_commit();
    if (bug == 5) reinterpret_cast<float*>(tile)[1] = 2;  // caught here: store_5 race:write-after-read
    if (bug != 2) tma_store_wait_read();
    if (bug == 6 && out[5] != 1) out[5] = 2;  // caught here: store_6 async-not-waited
    reinterpret_cast<float*>(tile)[0] = 2;  // caught here: store_2 race:write-after-read; store_3 race:write-after-read
  }
}
KERNEL(clipped_store) {  // the first row of the box is the last of the tensor
  HEAD reinterpret_cast<float*>(tile)[t] = t < 4 ? 1 : 7;
  if (t < 60) out[t] = 1;
  fence_proxy_async();
  __syncthreads();
  if (t == 0) {
    tma_store(&maps.out, tile, 0, 15, 0);
    tma_store(&maps.out, tile, 8, 0, 0);
    tma_store_commit();
    tma_store_wait();
  }
  __syncthreads();
  if (t == 9 && out[60] != 1) out[60] = 2;  // complete, and a barrier has said so
}

// --- products

// x [rows][64] in a tile of the 128B pattern.
__device__ __forceinline__ __half* element(unsigned char* tile, int row, int column) {
  return reinterpret_cast<__half*>(tile + swizzle_128b(row * 128 + column * 2));
}
__device__ __forceinline__ float value_a(int m, int k) { return (m + 2 * k) % 5 - 2; }
__device__ __forceinline__ float value_b(int n, int k) { return (3 * n + k) % 7 - 3; }
__device__ __forceinline__ float right_product(int m, int n, int depth) {
  float sum = 0;
  for (int k = 0; k < depth; ++k) sum += value_a(m, k) * value_b(n, k);
  return sum;
}
// All 128 threads say whether they are right; two of them are an element of out.
__device__ __forceinline__ void say(unsigned char* smem, float* out, bool right) {
  float* const said = S(float) + 128;
  said[threadIdx.x] = right;
  __syncthreads();
  if (threadIdx.x < 64) out[threadIdx.x] = said[threadIdx.x] * said[threadIdx.x + 64];
}
// D [64][32] = A [64][64] B^T [32][64], both in shared memory.
KERNEL(product) {
  HEAD unsigned char *const a = tile, *const b = tile + (8 << 10);
  if (bug == 13) fence_proxy_async();  // of nothing that follows
  for (int i = t; i < 64 * 64; i += 128) *element(a, i / 64, i % 64) = value_a(i / 64, i % 64);
  for (int i = t; i < 32 * 64; i += 128) *element(b, i / 64, i % 64) = value_b(i / 64, i % 64);
  if (bug != 1 && bug != 13) fence_proxy_async();
  __syncthreads();
  float d[16];
  if (bug == 2) d[3] = 1;
  if (bug != 2) wgmma_fence(d);
  if (bug == 12) d[3] = 1;
  const uint32_t at = shared_address(bug == 6 ? tile + (18 << 10) : b) + (bug == 5 ? 128 : 0);
  const uint64_t a_tile = matrix_descriptor(shared_address(a), 16, 1024, SWIZZLE_128B);
  const uint64_t b_tile = matrix_descriptor(at + (bug == 7 && t == 9 ? 1024 : 0), 16, 1024, SWIZZLE_128B);
  if (bug != 10 || warp < 2) {
    for (int k = 0; k < 4; ++k)
      wgmma_m64k16<0>(d, a_tile + descriptor_field(k * 32), b_tile + descriptor_field(k * 32), k);  // caught here: product_1 proxy-fence-missing; product_13 proxy-fence-missing; product_2 wgmma-fence-missing; product_5 misaligned-tile; product_6 out-of-bounds-shared; product_7 misuse; product_11 async-left-pending; product_12 wgmma-fence-missing
    if (bug != 4) wgmma_commit();
  }
  if (bug == 11) {
    if (t < 64) out[t] = 1;
    return;
  }
  if (bug == 9) *element(b, t % 32, t / 32) = 0;  // caught here: product_9 race:write-after-read
  if (bug != 3 && bug != 8) wgmma_wait<0>(d);  // caught here: product_10 deadlock
  if (bug == 8) wgmma_wait<1>(d);
  bool right = true;
  for (int i = 0; i < 16; ++i) {
    const int row = warp * 16 + lane / 4 + 8 * (i / 2 % 2), column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    right &= d[i] == right_product(row, column, 64);  // caught here: product_3 wgmma-not-waited; product_4 wgmma-not-waited; product_8 wgmma-not-waited
  }
  say(smem, out, right);
}
// D [64][64] = A [64][16] in registers by B [16][64], N-major, in two groups of the same accumulators.
KERNEL(product_of_registers) {
  HEAD unsigned char* const b = tile;
  for (int i = t; i < 16 * 64; i += 128) *element(b, i / 64, i % 64) = value_b(i % 64, i / 64);
  fence_proxy_async();
  __syncthreads();
  float d[32];
  uint32_t a[4];
  for (int i = 0; i < 4; ++i) {
    const int row = warp * 16 + lane / 4 + 8 * (i % 2), k = lane % 4 * 2 + 8 * (i / 2);
    a[i] = pack_half2(value_a(row, k), value_a(row, k + 1));
  }
  const uint64_t b_tile = matrix_descriptor(shared_address(b), 16, 1024, SWIZZLE_128B);
  wgmma_fence(a, d);
  wgmma_m64k16<1>(d, a, b_tile, 0);
  wgmma_commit();
  wgmma_m64k16<1>(d, a, b_tile, 1);
  wgmma_commit();
  if (bug == 1) wgmma_wait<1>(d);
  if (bug == 1) a[1] = 0;  // caught here: product_of_registers_1 wgmma-not-waited
  if (bug == 2 && a[1] == 7) d[0] = 1;  // caught here: product_of_registers_2 wgmma-not-waited
  wgmma_wait<0>(d);
  bool right = true;
  for (int i = 0; i < 32; ++i) {
    const int row = warp * 16 + lane / 4 + 8 * (i / 2 % 2), column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    right &= d[i] == 2 * right_product(row, column, 16);
  }
  say(smem, out, right);
}

// --- named barriers and registers

KERNEL(named_barriers) {
  HEAD const int pair = t / 64;
  S(float)[t] = 1;
  if (bug != 2) named_barrier_sync(bug == 3 ? 16 : bug == 6 ? 1 : 1 + pair, bug == 1 ? 96 : bug == 4 && warp == 1 ? 128 : 64);  // caught here: named_barriers_1 deadlock; named_barriers_3 misuse; named_barriers_4 misuse; named_barriers_6 misuse
  if (bug == 5 && pair) named_barrier_arrive(1, 64), named_barrier_arrive(1, 64);  // caught here: named_barriers_5 misuse
  const float x = S(float)[t ^ 32];  // caught here: named_barriers_2 race uninitialised
  if (t < 64) out[t] = x;
}
KERNEL(arrives_and_goes_on) {  // warps 0 and 1 hand over to 2 and 3
  HEAD if (t < 64) {
    S(float)[t] = 1;
    named_barrier_arrive(3, 128);
  } else {
    if (bug == 0) named_barrier_sync(3, 128);
    if (bug == 1) named_barrier_arrive(3, 128);
    out[t - 64] = S(float)[t - 64];  // caught here: arrives_and_goes_on_1 race uninitialised
  }
}
// Two warpgroups take turns, each at a barrier of its own where the other one only arrives.
KERNEL(takes_turns) {
  HEAD const int group = t / 128;
  if (group == 1) named_barrier_arrive(1, 256);
  for (int i = 0; i < 3; ++i) {
    group == 0 ? named_barrier_sync(1, 256) : named_barrier_sync(2, 256);
    S(float)[t % 128] = group * 3 + i;
    if (group == 0) named_barrier_arrive(2, 256);
    if (group == 1 && i < 2) named_barrier_arrive(1, 256);
  }
  if (t >= 192) out[t - 192] = S(float)[t - 128] == 5;
}
KERNEL(registers) {
  HEAD if (t < 128) {
    if (bug != 1) registers_release<24>();
    if (bug == 3) registers_release<32>();  // caught here: registers_3 misuse
    if (t < 64) out[t] = 1;
  } else if ((bug != 2 || t < 192) && (bug != 4 || lane == 0)) {
    registers_claim<256>();  // caught here: registers_1 deadlock; registers_2 misuse; registers_4 misuse
  }
}

// --- clusters of two blocks

KERNEL(peers_store) {
  HEAD const uint32_t peer = cluster_rank() ^ 1;
  if (bug != 1) cluster_arrive();
  if (bug != 1 && bug != 6 && warp == 0) cluster_wait();  // and tells the others
  __syncthreads();
  remote_store(address_at(S(float) + t, bug == 4 ? peer + 2 : peer), 1);  // caught here: peers_store_1 peer-not-started; peers_store_6 peer-not-started; peers_store_4 out-of-bounds-shared; peers_store_3 race
  if (bug != 1 && (bug == 6 || warp == 1)) cluster_wait();
  if (bug != 2) bug == 3 ? cluster_arrive_relaxed() : cluster_arrive();
  if (bug == 5) cluster_arrive();  // caught here: peers_store_5 misuse
  if (bug != 2) cluster_wait();
  if (cluster_rank() == 0) out[t] = S(float)[t];  // caught here: peers_store_2 race uninitialised; peers_store_3 race
  cluster_arrive();
  cluster_wait();
}
KERNEL(peers_load) {
  HEAD const uint32_t peer = cluster_rank() ^ 1;
  S(float)[t] = 1;
  cluster_arrive();
  cluster_wait();
  const float4 x = remote_load4(address_at(S(float) + t / 4 * 4, peer));  // caught here: peers_load_1 peer-exited; peers_load_2 peer-exited
  if (cluster_rank() == 0) out[t] = x.x * x.y * x.z * x.w * remote_load(address_at(S(float) + t, peer));
  if (bug == 1) return;
  bug == 2 ? cluster_arrive_relaxed() : cluster_arrive();
  cluster_wait();
}
KERNEL(peers_store_async) {
  HEAD const uint32_t peer = cluster_rank() ^ 1;
  float4* const mine = reinterpret_cast<float4*>(tile);
  if (t == 0) {
    mbarrier_init(bars, 1);
    if (bug != 4) fence_mbarrier_init();
    mbarrier_arrive_expect_tx(bars, bug == 2 ? 512 : 64 * 16);
  }
  cluster_arrive_relaxed();
  cluster_wait();
  const float4 ones = make_float4(1, 1, 1, 1);
  remote_store4_async(address_at(mine + t, bug == 3 ? peer ^ 1 : peer), address_at(bars, peer), ones);  // caught here: peers_store_async_2 expect-tx-mismatch peer-exited; peers_store_async_3 mbarrier-misuse; peers_store_async_4 race; peers_store_async_1 peer-exited
  if (bug != 1) mbarrier_wait(bars, 0);
  const float4 x = mine[t ^ 1];  // caught here: peers_store_async_1 async-not-waited uninitialised
  if (cluster_rank() == 0) out[t] = x.x * x.y * x.z * x.w;
}
KERNEL(peers_copy) {
  HEAD const uint32_t peer = cluster_rank() ^ 1;
  S(float)[256 + t] = 1;
  if (t == 0) {
    mbarrier_init(bars, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(bars, BYTES);
  }
  if (bug != 1) fence_proxy_async();
  cluster_arrive();
  cluster_wait();
  if (t == 0) remote_copy_async(address_at(S(float) + 512, peer), address_at(bars, peer), S(float) + 256, BYTES);  // caught here: peers_copy_1 proxy-fence-missing; peers_copy_2 async-left-pending
  mbarrier_wait(bars, 0);
  if (cluster_rank() == 0) out[t] = S(float)[512 + t];
  if (bug == 2) return;
  cluster_arrive();  // the source is read until the peer has it
  cluster_wait();
}
// The block of rank 0 may overwrite what its peer has read; the peer says so by an arrival.
KERNEL(peers_arrive) {
  HEAD if (t == 0) {
    mbarrier_init(bars, 64);
    fence_mbarrier_init();
  }
  if (cluster_rank() == 0) S(float)[256 + t] = 1;
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 1) {
    const float x = remote_load(address_at(S(float) + 256 + (t ^ 32), 0));
    out[t] = x;
    bug == 1 ? remote_arrive<SCOPE_CTA>(address_at(bars, 0)) : remote_arrive(address_at(bars, 0));  // caught here: peers_arrive_3 peer-exited
  } else if (bug != 3) {
    bug == 2 ? mbarrier_wait(bars, 0) : mbarrier_wait<SCOPE_CLUSTER>(bars, 0);
    S(float)[256 + t] = 2;  // caught here: peers_arrive_1 race; peers_arrive_2 race
  }
}
KERNEL(multicast) {
  HEAD if (t == 0) {
    mbarrier_init(bars, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(bars, BYTES);
  }
  if (bug != 2) cluster_arrive_relaxed(), cluster_wait();
  if (bug == 2) __syncthreads();
  if (t == 0 && cluster_rank() == 0) tma_load_multicast(tile, &maps.in, bars, 0, 0, 0, 3);  // caught here: multicast_1 async-left-pending peer-exited; multicast_2 peer-not-started
  if (bug == 1 && cluster_rank() == 1) return;
  mbarrier_wait(bars, 0);
  const bool right = reinterpret_cast<float*>(tile)[t] == t;
  if (cluster_rank() == (bug == 1 ? 0 : 1)) out[t] = right;
  if (bug != 1) cluster_arrive(), cluster_wait();
}

struct Case {
  const char* name;
  void (*kernel)(Maps, float*, int);
  int threads, blocks, bugs;
};
static const Case CASES[] = {
    {"load", load, 64, 1, 19},
    {"waits_for_all", waits_for_all, 64, 1, 1},
    {"clipped_load", clipped_load, 64, 1, 0},
    {"ring", ring, 64, 1, 4},
    {"handed_over", handed_over, 64, 1, 2},
    {"store", store, 64, 1, 6},
    {"clipped_store", clipped_store, 64, 1, 0},
    {"product", product, 128, 1, 13},
    {"product_of_registers", product_of_registers, 128, 1, 2},
    {"named_barriers", named_barriers, 128, 1, 6},
    {"arrives_and_goes_on", arrives_and_goes_on, 128, 1, 1},
    {"takes_turns", takes_turns, 256, 1, 0},
    {"registers", registers, 256, 1, 4},
    {"peers_store", peers_store, 64, 2, 6},
    {"peers_load", peers_load, 64, 2, 2},
    {"peers_store_async", peers_store_async, 64, 2, 4},
    {"peers_copy", peers_copy, 64, 2, 2},
    {"peers_arrive", peers_arrive, 64, 2, 3},
    {"multicast", multicast, 64, 2, 2},
};
// in and out are [64] floats; `which` is a case's number times 100, plus the bug's.
extern "C" int async(const void* in, void* out, int which, void* stream) {
  const Case& of = CASES[which / 100];
  Maps maps;
  if (make_tensor_map(&maps.in, in, 8, 16, 1, 8, 16, SWIZZLE_NONE) ||
      make_tensor_map(&maps.out, out, 8, 16, 1, 8, 16, SWIZZLE_NONE) ||
      make_tensor_map(&maps.beyond, in, 8, 32, 1, 8, 16, SWIZZLE_NONE))
    return -1;
  return LAUNCH_CLUSTER(of.kernel, dim3(of.blocks), dim3(of.blocks), dim3(of.threads), 16 << 10, stream, maps,
                        (float*)out, which % 100);
}
