// One kernel a bug of the kinds that the CPU runtime must report. `// caught here: kind ...` marks the line,
// and every schedule must report it there (for a race, at either end). 64 threads, 1 KB of shared memory
// unless LAUNCHES says more.
#include <cuda_pipeline.h>
#include <mma.h>

#include "common.cuh"

#define S(type) reinterpret_cast<type*>(smem)
#define HEAD                                              \
  DYN_SMEM(smem);                                         \
  [[maybe_unused]] const int t = threadIdx.x;             \
  [[maybe_unused]] const int lane = t % 32, warp = t / 32;
#define KERNEL(name) __global__ void name([[maybe_unused]] const float* in, [[maybe_unused]] float* out)

// --- races

KERNEL(read_with_no_barrier) {
  HEAD S(float)[t] = t;
  out[t] = S(float)[t ^ 32];  // caught here: race
}
KERNEL(write_with_no_barrier) {
  HEAD S(float)[t] = t;
  __syncthreads();
  const float x = S(float)[t ^ 32];
  S(float)[t] = x;  // caught here: race:write-after-read
}
KERNEL(two_warps_write) {
  HEAD S(float)[lane] = warp;  // caught here: race:write-after-write
}
KERNEL(two_warps_add) {
  HEAD if (t == 0) S(float)[0] = 0;
  __syncthreads();
  if (lane == 0) S(float)[0] += 1;  // caught here: race
}
KERNEL(syncwarp_where_the_block_must_meet) {
  HEAD S(float)[t] = t;
  __syncwarp();
  out[t] = S(float)[t ^ 32];  // caught here: race
}
KERNEL(lane_0_writes_and_no_syncwarp) {
  HEAD if (lane == 0) S(float)[warp] = 1;
  out[t] = S(float)[warp];  // caught here: race
}
KERNEL(shuffle_taken_for_a_barrier) {
  HEAD S(float)[t] = t;
  const float x = __shfl_xor_sync(FULL_WARP, float(t), 1);
  out[t] = S(float)[t ^ 1] + x;  // caught here: race
}
KERNEL(half_a_warp_meets) {
  HEAD S(float)[t] = t;
  __syncwarp(lane < 16 ? 0x0000ffffu : 0xffff0000u);
  out[t] = S(float)[t ^ 16];  // caught here: race
}
KERNEL(another_lane_has_read_too) {
  HEAD if (t == 0) S(float)[0] = 1;
  __syncthreads();
  if (warp == 0) out[t] = S(float)[0];
  if (t == 5) S(float)[0] = 2;  // caught here: race:write-after-read
}
KERNEL(atomic_beside_a_plain_read) {
  HEAD if (t == 0) S(float)[0] = 0;
  __syncthreads();
  if (warp == 0) atomicAdd(S(float), 1.f);
  if (warp == 1) out[t] = S(float)[0];  // caught here: race
}
KERNEL(neighbouring_halves_then_a_word) {
  HEAD S(__half)[t] = float(t);
  out[t] = S(uint32_t)[t / 2];  // caught here: race
}

// --- uninitialised

KERNEL(never_written) {
  HEAD out[t] = S(float)[t];  // caught here: uninitialised
}
KERNEL(written_by_the_block_before) {
  HEAD if (blockIdx.x == 0) S(float)[t] = 1;
  __syncthreads();
  out[t] = S(float)[t];  // caught here: uninitialised
}
KERNEL(added_to_before_it_is_zeroed) {
  HEAD atomicAdd(S(float), 1.f);  // caught here: uninitialised
}

// --- out of bounds, misaligned

KERNEL(past_the_end_of_shared) {
  HEAD S(float)[256 + t] = t;  // caught here: out-of-bounds-shared
}
KERNEL(before_the_start_of_shared) {
  HEAD S(float)[t - 32] = t;  // caught here: out-of-bounds-shared
}
KERNEL(past_the_end_of_an_input) {
  HEAD out[t] = in[t + 1];  // caught here: out-of-bounds-global
}
KERNEL(past_the_end_of_the_output) {
  HEAD out[2 * t] = 1;  // caught here: out-of-bounds-global
}
KERNEL(writes_an_input) {
  HEAD const_cast<float*>(in)[t] = 1;  // caught here: out-of-bounds-global
}
KERNEL(null_pointer) {
  HEAD out[t] = *reinterpret_cast<const volatile float*>(in == out ? in : nullptr);  // caught here: out-of-bounds-global
}
KERNEL(float4_at_a_float) {
  HEAD reinterpret_cast<float4*>(S(float) + 1)[0] = {};  // caught here: misaligned
}
KERNEL(wmma_at_half_a_row) {
  HEAD nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> f;
  nvcuda::wmma::fill_fragment(f, 0.f);
  nvcuda::wmma::store_matrix_sync(S(float) + 4, f, 16, nvcuda::wmma::mem_row_major);  // caught here: misaligned
}

// --- cp.async

KERNEL(copy_not_waited_for) {
  HEAD __pipeline_memcpy_async(S(float) + t, in + t, 4);
  __pipeline_commit();
  out[t] = S(float)[t];  // caught here: cp.async-not-waited
  __pipeline_wait_prior(0);
}
KERNEL(waits_for_the_wrong_copy) {
  HEAD __pipeline_memcpy_async(S(float) + t, in + t, 4);
  __pipeline_commit();
  __pipeline_memcpy_async(S(float) + 64 + t, in + t, 4);
  __pipeline_commit();
  __pipeline_wait_prior(1);
  out[t] = S(float)[64 + t];  // caught here: cp.async-not-waited
  __pipeline_wait_prior(0);
}
KERNEL(waits_and_does_not_meet) {
  HEAD __pipeline_memcpy_async(S(float) + t, in + t, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[t] = S(float)[t ^ 32];  // caught here: race cp.async-not-waited uninitialised
}
KERNEL(meets_before_it_waits) {
  HEAD __pipeline_memcpy_async(S(float) + t, in + t, 4);
  __pipeline_commit();
  __syncthreads();
  __pipeline_wait_prior(0);
  out[t] = S(float)[t ^ 32];  // caught here: race cp.async-not-waited
}
KERNEL(copies_into_what_is_read) {
  HEAD S(float)[t] = t;
  __syncthreads();
  out[t] = S(float)[t ^ 32];
  __pipeline_memcpy_async(S(float) + t, in + t, 4);  // caught here: race
  __pipeline_commit();
  __pipeline_wait_prior(0);
}
KERNEL(writes_while_the_copy_flies) {
  HEAD __pipeline_memcpy_async(S(float) + t, in + t, 4);
  __pipeline_commit();
  S(float)[t] = 0;  // caught here: cp.async-not-waited
  __pipeline_wait_prior(0);
}
KERNEL(ends_with_a_copy_in_flight) {
  HEAD __pipeline_memcpy_async(S(float) + t, in + t, 4);  // caught here: cp.async-left-pending
  __pipeline_commit();
}
KERNEL(copies_past_the_end_of_an_input) {
  HEAD __pipeline_memcpy_async(S(float) + 4 * t, in + 4 * t, 16);  // caught here: out-of-bounds-global
  __pipeline_commit();
  __pipeline_wait_prior(0);
}
KERNEL(copies_to_a_misaligned_place) {
  HEAD if (t == 0) __pipeline_memcpy_async(S(float) + 1, in, 16);  // caught here: misaligned
  __pipeline_commit();
  __pipeline_wait_prior(0);
}
KERNEL(copies_to_global_memory) {
  HEAD __pipeline_memcpy_async(out + t, in + t, 4);  // caught here: misuse
}

// --- barriers and collectives

KERNEL(barriers_in_two_branches) {
  HEAD if (warp == 0)
    __syncthreads();  // caught here: barrier-divergence
  else
    __syncthreads();
}
KERNEL(ends_before_the_barrier) {
  HEAD if (warp == 0) return;
  __syncthreads();  // caught here: barrier-divergence
}
KERNEL(half_a_warp_shuffles) {
  HEAD if (lane < 16) out[t] = __shfl_xor_sync(FULL_WARP, float(t), 1);  // caught here: deadlock
}
KERNEL(barrier_against_syncwarp) {
  HEAD if (lane == 0) __syncthreads();  // caught here: deadlock
  else __syncwarp();
}
KERNEL(not_in_its_own_mask) {
  HEAD __syncwarp(0x0000ffffu);  // caught here: misuse
}
KERNEL(two_collectives_meet) {
  HEAD if (lane < 16) out[t] = __shfl_sync(FULL_WARP, float(t), 0);  // caught here: misuse
  else out[t] = __ballot_sync(FULL_WARP, t);  // caught here: misuse
}
KERNEL(shuffles_from_outside_the_mask) {
  HEAD if (lane < 16) out[t] = __shfl_sync(0x0000ffffu, float(t), 20);  // caught here: misuse
}

// --- what ends the process or never ends

KERNEL(never_ends) {
  HEAD while (blockIdx.x == 0) out[t] = 1;
}
__noinline__ int deeper(volatile int* above, int n) {
  volatile int here[1024] = {n + *above};
  return n == 0 ? here[1] : deeper(here, n + 1) + here[0];
}
KERNEL(overflows_its_stack) {
  HEAD volatile int n = 1;
  out[t] = deeper(&n, 1);
}

struct Planted {
  const char* name;
  void (*kernel)(const float*, float*);
  int blocks, threads;
  size_t smem;
};
#define ONE(name) {#name, name, 1, 64, 1024}
static const Planted LAUNCHES[] = {
    ONE(read_with_no_barrier),
    ONE(write_with_no_barrier),
    ONE(two_warps_write),
    ONE(two_warps_add),
    ONE(syncwarp_where_the_block_must_meet),
    ONE(lane_0_writes_and_no_syncwarp),
    ONE(shuffle_taken_for_a_barrier),
    ONE(half_a_warp_meets),
    ONE(another_lane_has_read_too),
    ONE(atomic_beside_a_plain_read),
    ONE(neighbouring_halves_then_a_word),
    ONE(never_written),
    {"written_by_the_block_before", written_by_the_block_before, 2, 64, 1024},
    ONE(added_to_before_it_is_zeroed),
    ONE(past_the_end_of_shared),
    ONE(before_the_start_of_shared),
    ONE(past_the_end_of_an_input),
    ONE(past_the_end_of_the_output),
    ONE(writes_an_input),
    ONE(null_pointer),
    ONE(float4_at_a_float),
    ONE(wmma_at_half_a_row),
    ONE(copy_not_waited_for),
    ONE(waits_for_the_wrong_copy),
    ONE(waits_and_does_not_meet),
    ONE(meets_before_it_waits),
    ONE(copies_into_what_is_read),
    ONE(writes_while_the_copy_flies),
    ONE(ends_with_a_copy_in_flight),
    ONE(copies_past_the_end_of_an_input),
    ONE(copies_to_a_misaligned_place),
    ONE(copies_to_global_memory),
    ONE(barriers_in_two_branches),
    ONE(ends_before_the_barrier),
    ONE(half_a_warp_shuffles),
    ONE(barrier_against_syncwarp),
    ONE(not_in_its_own_mask),
    ONE(two_collectives_meet),
    ONE(shuffles_from_outside_the_mask),
    ONE(never_ends),
    ONE(overflows_its_stack),
    {"over_the_budget", two_warps_write, 1, 64, 100 << 10},
    {"over_the_device", two_warps_write, 1, 64, 228 << 10},
    {"too_many_threads", two_warps_write, 1, 2048, 1024},
};
// in and out are [64] floats. Runs the LAUNCHES entry number `which`; -1 where there is none.
extern "C" int planted(const void* in, void* out, int which, void* stream) {
  if (which >= int(sizeof LAUNCHES / sizeof *LAUNCHES)) return -1;
  const Planted& one = LAUNCHES[which];
  return cpucuda::launch(one.name, dim3(one.blocks), dim3(one.threads), one.smem,
                         [&] { one.kernel((const float*)in, (float*)out); });
}
