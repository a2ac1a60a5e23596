// One kernel a bug of the kinds that the CPU runtime must report. `// caught here: kind ...` marks the line,
// and every schedule must report it there (for a race, at either end). 64 threads, 1 KB of shared memory
// unless LAUNCHES says more.
#include <cuda_pipeline.h>
#include <mma.h>

#include <cassert>

#include "common.cuh"
#ifdef CLOCKS  // judged as a source that includes hopper.cuh
#include <cuda_hopper.h>
#endif

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
KERNEL(lanes_store_their_own) {
  HEAD S(float)[warp] = t / 16;  // caught here: race:write-after-write
}
KERNEL(moves_past_the_end_of_the_output) {
  HEAD if (t == 0) memset(out + 40, 0, blockDim.x * 2);  // caught here: out-of-bounds-global
}
KERNEL(moves_past_the_end_of_shared) {
  HEAD if (t == 0) memcpy(S(char) + 1000, in, blockDim.x * 4);  // caught here: out-of-bounds-shared
}
KERNEL(moves_what_another_warp_wrote) {
  HEAD S(float)[t] = t;
  if (t == 0) memcpy(out, smem, blockDim.x * 4);  // caught here: race
}
KERNEL(moves_a_fixed_size_past_the_end) {
  HEAD if (t == 0) memset(out + 63, 0, 32);  // caught here: out-of-bounds-global
}
KERNEL(moves_a_fixed_size_onto_anothers) {
  HEAD S(float)[t] = t;
  if (t == 0) memset(S(float) + 28, 0, 32);  // caught here: race
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
KERNEL(atomics_beside_a_plain_store) {
  HEAD if (t == 0) S(float)[0] = 0;  // caught here: race uninitialised
  atomicAdd(S(float), 1.f);          // caught here: race uninitialised
}
KERNEL(neighbouring_halves_then_a_word) {
  HEAD S(__half)[t] = float(t);
  out[t] = S(uint32_t)[t / 2];  // caught here: race
}

// --- races in global memory

__device__ float parts[256];
__device__ unsigned arrived, counted;  // arrived is 0 again after each run

KERNEL(a_thread_reads_anothers_output) {
  HEAD out[t] = t;
  out[t] += out[t ^ 32];  // caught here: race:global-read-after-write race:global-write-after-read
}
KERNEL(two_threads_write_one_output) {
  HEAD out[t / 2] = t;  // caught here: race:global-write-after-write
}
KERNEL(blocks_add_their_parts) {
  HEAD out[t] = blockIdx.x == 0 ? 1 : out[t] + 1;  // caught here: race:global uninitialised-global
}
KERNEL(two_blocks_write_one_output) {
  HEAD if (t == 0) out[blockIdx.x / 2] = blockIdx.x;  // caught here: race:global-write-after-write
}
KERNEL(a_block_reads_what_another_writes) {
  HEAD if (blockIdx.x == 0) parts[t] = 1;  // caught here: race:global-write-after-read
  if (blockIdx.x == 1) out[t] = parts[t];  // caught here: race:global-read-after-write
}
KERNEL(blocks_count_with_no_atomic) {
  HEAD if (t == 0) counted = counted + 1;  // caught here: race:global
}
KERNEL(atomic_over_what_another_block_stored) {
  HEAD if (t == 0 && blockIdx.x == 0) counted = 0;  // caught here: race:global
  if (t == 0) atomicAdd(&counted, 1);               // caught here: race:global
}
// The block that comes last adds up what all of them stored.
#define GO_ON_IN_THE_LAST_BLOCK                                                \
  if (t == 0) S(int)[0] = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1; \
  __syncthreads();                                                             \
  if (!S(int)[0]) return;
#define SUM_OF_4_PARTS parts[t] + parts[t + 64] + parts[t + 128] + parts[t + 192]
KERNEL(last_block_with_no_fence) {
  HEAD parts[blockIdx.x * 64 + t] = 1;
  __syncthreads();
  GO_ON_IN_THE_LAST_BLOCK
  out[t] = SUM_OF_4_PARTS;  // caught here: race:global-read-after-write
}
KERNEL(last_block_with_the_fence_of_a_block) {
  HEAD parts[blockIdx.x * 64 + t] = 1;
  __threadfence_block();
  __syncthreads();
  GO_ON_IN_THE_LAST_BLOCK
  out[t] = SUM_OF_4_PARTS;  // caught here: race:global-read-after-write
}
KERNEL(last_block_with_one_fence_and_no_barrier) {
  HEAD parts[blockIdx.x * 64 + t] = 1;
  if (t == 0) __threadfence();
  GO_ON_IN_THE_LAST_BLOCK
  out[t] = SUM_OF_4_PARTS;  // caught here: race:global-read-after-write
}
KERNEL(last_block_with_the_fence_too_early) {
  HEAD __threadfence();
  parts[blockIdx.x * 64 + t] = 1;
  __syncthreads();
  GO_ON_IN_THE_LAST_BLOCK
  out[t] = SUM_OF_4_PARTS;  // caught here: race:global-read-after-write
}
KERNEL(last_block_with_the_fence_too_late) {
  HEAD parts[blockIdx.x * 64 + t] = 1;
  __syncthreads();
  GO_ON_IN_THE_LAST_BLOCK
  __threadfence();
  out[t] = SUM_OF_4_PARTS;  // caught here: race:global-read-after-write
}
KERNEL(last_block_reads_an_atomic_sum_with_no_fence) {
  HEAD atomicAdd(parts + t, 1.f);
  __syncthreads();
  GO_ON_IN_THE_LAST_BLOCK
  out[t] = parts[t];  // caught here: race:global-read-after-write
}
KERNEL(every_block_takes_itself_for_the_last) {
  HEAD parts[blockIdx.x * 64 + t] = 1;
  __threadfence();
  __syncthreads();
  if (t == 0) atomicInc(&arrived, gridDim.x - 1);
  __syncthreads();
  if (t < 4) atomicExch(out + t, parts[t * 64]);  // caught here: race:global
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
KERNEL(swapped_before_it_is_set) {
  HEAD atomicCAS(S(int), 0, 1);  // caught here: uninitialised
}
KERNEL(output_never_written) {
  HEAD out[t] += 1;  // caught here: uninitialised-global
}
KERNEL(output_added_to_before_it_is_zeroed) {
  HEAD atomicAdd(out + t, 1.f);  // caught here: uninitialised-global
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
KERNEL(another_threads_stack) {
  HEAD float mine = t;
  S(const volatile float*)[t] = &mine;
  __syncthreads();
  out[t] = *S(const volatile float*)[t ^ 1];  // caught here: out-of-bounds-global
}
__device__ int* of_the_launcher;
KERNEL(variable_of_the_launcher) {
  HEAD if (t == 0) *of_the_launcher = 1;  // caught here: out-of-bounds-global
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
KERNEL(copies_over_a_copy_in_flight) {
  HEAD __pipeline_memcpy_async(S(float) + t, in + t, 4);
  __pipeline_commit();
  __pipeline_memcpy_async(S(float) + t, in + (t ^ 1), 4);  // caught here: cp.async-not-waited
  __pipeline_commit();
  __pipeline_wait_prior(0);
}
KERNEL(waits_for_what_is_not_committed) {
  HEAD __pipeline_memcpy_async(S(float) + t, in + t, 4);
  __pipeline_wait_prior(0);
  out[t] = S(float)[t];  // caught here: cp.async-not-waited
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
KERNEL(barriers_in_two_branches_of_a_line) {
  HEAD if (warp == 0) __syncthreads(); else __syncthreads();  // caught here: barrier-divergence
}
#define MEET __syncthreads()
KERNEL(barriers_of_a_macro_in_two_branches) {
  HEAD warp == 0 ? MEET : MEET;  // caught here: barrier-divergence
}
__device__ __noinline__ void meet() { __syncthreads(); }
KERNEL(barrier_of_a_function_in_two_branches) {
  HEAD if (warp == 0)
    meet();  // caught here: barrier-divergence
  else
    meet();  // caught here: barrier-divergence
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
KERNEL(two_shuffles_meet) {
  HEAD if (lane < 16) out[t] = __shfl_xor_sync(FULL_WARP, float(t), 1);  // caught here: misuse
  else out[t] = __shfl_sync(FULL_WARP, float(t), 0);                     // caught here: misuse
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
KERNEL(divides_by_zero) {
  HEAD volatile int none = 0;
  out[t] = t / none;
}
KERNEL(gives_up) { HEAD if (t == 0) abort(); }
KERNEL(asserts_after_a_read) {
  HEAD S(float)[t] = t;
  const float n = S(float)[t ^ 32];
  assert(n == -1);
}
KERNEL(ends_the_process) { HEAD if (t == 0) exit(3); }

struct Planted {
  const char* name;
  void (*kernel)(const float*, float*);
  int blocks, threads;
  size_t smem;
  bool on_stream = true;
};
#define ONE(name) {#name, name, 1, 64, 1024}
#define BLOCKS(name) {#name, name, 4, 64, 1024}
static const Planted LAUNCHES[] = {
    ONE(read_with_no_barrier),
    ONE(write_with_no_barrier),
    ONE(two_warps_write),
    ONE(lanes_store_their_own),
    ONE(two_warps_add),
    ONE(moves_past_the_end_of_the_output),
    ONE(moves_past_the_end_of_shared),
    ONE(moves_what_another_warp_wrote),
    ONE(syncwarp_where_the_block_must_meet),
    ONE(lane_0_writes_and_no_syncwarp),
    ONE(shuffle_taken_for_a_barrier),
    ONE(half_a_warp_meets),
    ONE(another_lane_has_read_too),
    ONE(atomic_beside_a_plain_read),
    ONE(atomics_beside_a_plain_store),
    ONE(neighbouring_halves_then_a_word),
    ONE(a_thread_reads_anothers_output),
    ONE(two_threads_write_one_output),
    BLOCKS(blocks_add_their_parts),
    BLOCKS(two_blocks_write_one_output),
    BLOCKS(a_block_reads_what_another_writes),
    BLOCKS(blocks_count_with_no_atomic),
    BLOCKS(atomic_over_what_another_block_stored),
    BLOCKS(last_block_with_no_fence),
    BLOCKS(last_block_with_the_fence_of_a_block),
    BLOCKS(last_block_with_one_fence_and_no_barrier),
    BLOCKS(last_block_with_the_fence_too_early),
    BLOCKS(last_block_with_the_fence_too_late),
    BLOCKS(last_block_reads_an_atomic_sum_with_no_fence),
    BLOCKS(every_block_takes_itself_for_the_last),
    ONE(never_written),
    {"written_by_the_block_before", written_by_the_block_before, 2, 64, 1024},
    ONE(added_to_before_it_is_zeroed),
    ONE(swapped_before_it_is_set),
    ONE(output_never_written),
    ONE(output_added_to_before_it_is_zeroed),
    ONE(past_the_end_of_shared),
    ONE(before_the_start_of_shared),
    ONE(past_the_end_of_an_input),
    ONE(past_the_end_of_the_output),
    ONE(writes_an_input),
    ONE(null_pointer),
    ONE(another_threads_stack),
    ONE(variable_of_the_launcher),
    ONE(float4_at_a_float),
    ONE(wmma_at_half_a_row),
    ONE(copy_not_waited_for),
    ONE(waits_for_the_wrong_copy),
    ONE(waits_and_does_not_meet),
    ONE(meets_before_it_waits),
    ONE(copies_into_what_is_read),
    ONE(writes_while_the_copy_flies),
    ONE(copies_over_a_copy_in_flight),
    ONE(waits_for_what_is_not_committed),
    ONE(ends_with_a_copy_in_flight),
    ONE(copies_past_the_end_of_an_input),
    ONE(copies_to_a_misaligned_place),
    ONE(copies_to_global_memory),
    ONE(barriers_in_two_branches),
    ONE(barriers_in_two_branches_of_a_line),
    ONE(barriers_of_a_macro_in_two_branches),
    ONE(barrier_of_a_function_in_two_branches),
    ONE(ends_before_the_barrier),
    ONE(half_a_warp_shuffles),
    ONE(barrier_against_syncwarp),
    ONE(not_in_its_own_mask),
    ONE(two_collectives_meet),
    ONE(two_shuffles_meet),
    ONE(shuffles_from_outside_the_mask),
    ONE(never_ends),
    ONE(overflows_its_stack),
    ONE(divides_by_zero),
    ONE(gives_up),
    ONE(asserts_after_a_read),
    ONE(ends_the_process),
    {"on_another_stream", two_warps_write, 1, 32, 1024, false},
    {"over_the_budget", two_warps_write, 1, 64, 100 << 10},
    {"over_the_device", two_warps_write, 1, 64, 228 << 10},
    {"too_many_threads", two_warps_write, 1, 2048, 1024},
};
// in and out are [64] floats. Runs the LAUNCHES entry number `which`; -1 where there is none.
extern "C" int planted(const void* in, void* out, int which, void* stream) {
  if (which >= int(sizeof LAUNCHES / sizeof *LAUNCHES)) return -1;
  const Planted& one = LAUNCHES[which];
  of_the_launcher = &which;
  return cpucuda::launch(one.name, dim3(one.blocks), dim3(one.threads), one.smem,
                         one.on_stream ? stream : nullptr,
                         [&] { one.kernel((const float*)in, (float*)out); });
}
