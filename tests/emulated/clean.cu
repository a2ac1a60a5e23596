// Kernels with nothing wrong, near to what is: no schedule may report anything, and every element of out must
// be 1. 64 threads, 16 KB of shared memory.
#include <cuda_pipeline.h>
#include <mma.h>

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

KERNEL(block_exchange) {
  HEAD bool right = true;
  for (int i = 0; i < 4; ++i) {
    S(float)[t] = t + i;
    __syncthreads();
    right &= S(float)[63 - t] == 63 - t + i;
    __syncthreads();
  }
  out[t] = right;
}
KERNEL(warp_exchange) {
  HEAD bool right = true;
  for (int i = 0; i < 4; ++i) {
    S(float)[t] = t + i;
    __syncwarp();
    right &= S(float)[t ^ 31] == (t ^ 31) + i;
    __syncwarp();
  }
  out[t] = right;
}
KERNEL(moves_of_fixed_sizes) {  // which g++ would make stores that nothing sees
  HEAD const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  memset(S(char) + t * 32, 0, 32);
  memcpy(S(char) + 2048 + t * 32, ones, 32);
  __syncthreads();
  out[t] = S(float)[8 * (63 - t)] == 0 && S(float)[512 + 8 * (63 - t) + 7] == 1;
}
KERNEL(all_lanes_store_their_sum) {  // a value that is the same in all of a warp
  HEAD float sum = t;
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(FULL_WARP, sum, o);
  S(float)[warp] = sum;
  __syncthreads();
  out[t] = S(float)[0] + S(float)[1] == 63 * 32;
}
KERNEL(all_warps_store_the_same) {  // a flag
  HEAD if (t == 0) S(int)[0] = 0;
  __syncthreads();
  if (t % 3 == 0) S(int)[0] = 1;
  __syncthreads();
  out[t] = S(int)[0];
}
KERNEL(moves_of_many_bytes) {
  HEAD const int many = blockDim.x / 8;
  if (t % 8 == 0) {
    memset(S(float) + t, 0, many * sizeof(float));
    memcpy(S(float) + 64 + t, in + t, many * sizeof(float));
  }
  __syncthreads();
  out[t] = S(float)[63 - t] == 0 && S(float)[64 + (t ^ 32)] == (t ^ 32);
}
KERNEL(half_warps_meet_in_turn) {  // lane 0 to 8 by one mask, 8 to 24 by another: ordered through lane 8
  HEAD if (lane == 0) S(float)[warp] = 7;
  if (lane < 16) __syncwarp(0x0000ffffu);
  if (lane >= 8 && lane < 24) __syncwarp(0x00ffff00u);
  out[t] = lane >= 8 && lane < 24 ? S(float)[warp] == 7 : 1;
}
KERNEL(neighbours_in_a_word) {  // threads that share a word, and no byte
  HEAD S(__half)[t] = float(t);
  S(uint8_t)[1024 + t] = t;
  const bool right = float(S(__half)[t]) == t && S(uint8_t)[1024 + t] == t;
  __syncthreads();
  const uint32_t pair = S(uint32_t)[t / 2], four = S(uint32_t)[256 + t / 4];
  __half half_of_it;
  const uint16_t bits = pair >> t % 2 * 16;
  memcpy(&half_of_it, &bits, 2);
  out[t] = right && float(half_of_it) == t && (four >> t % 4 * 8 & 255) == unsigned(t);
}
KERNEL(atomics) {
  HEAD if (t == 0) S(int)[0] = 0;
  __syncthreads();
  atomicAdd(S(int), 1);
  __syncthreads();
  out[t] = S(int)[0] == 64;
}
KERNEL(exchange_first) {  // what an exchange replaces need not have been written
  HEAD atomicExch(S(int) + t % 8, t);
  atomicExch(out + t, 0.f);
  __syncthreads();
  atomicAdd(out + t, S(int)[t % 8] % 8 == t % 8);
}
KERNEL(many_readers_then_a_writer) {
  HEAD if (t == 0) S(float)[0] = 1;
  __syncthreads();
  const float x = S(float)[0];
  __syncthreads();
  if (t == 40) S(float)[0] = 2;
  __syncthreads();
  out[t] = x + S(float)[0] == 3;
}
__device__ __noinline__ void meet(float& sum, float x) {
  __syncthreads();
  sum += x;
}
KERNEL(barrier_that_the_compiler_copies) {  // by unrolling, and by inlining
  HEAD float sum = 0;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    if (warp == i % 2) sum += 2;
    __syncthreads();
    if (warp == i % 2) sum -= 2;
    meet(sum, .125f);
  }
  if (warp == 0) sum += 1;
  meet(sum, .5f);
  if (warp == 0) sum -= 1;
  out[t] = sum;
}
KERNEL(converged_lanes) {
  HEAD bool right = __activemask() == FULL_WARP;
  if (lane < 16)
    right &= __activemask() == 0x0000ffffu;
  else
    right &= __activemask() == 0xffff0000u;
  out[t] = right;
  if (lane == 5) return;
  if (lane == 6) __syncwarp(1u << 6 | 1u << 7);
  const unsigned others = __activemask();  // lane 6 waits until lane 7 comes to it
  if (lane == 7) __syncwarp(1u << 6 | 1u << 7);
  out[t] = right && others == (lane == 6 ? 1u << 6 : FULL_WARP & ~(1u << 5 | 1u << 6));
}
KERNEL(one_lane_adds_for_the_converged) {
  HEAD if (t == 0) S(int)[0] = 0;
  __syncthreads();
  if (lane % 3 == 0) {
    const unsigned active = __activemask();
    if (lane == __ffs(active) - 1) atomicAdd(S(int), __popc(active));
  }
  __syncthreads();
  out[t] = S(int)[0] == 2 * 11;
}

// --- global memory

__device__ float parts[256];
__device__ unsigned arrived[3];

KERNEL(own_output_twice) {
  HEAD out[t] = 4;
  for (int i = 0; i < 2; ++i) out[t] *= .5f;
}
KERNEL(exchange_in_the_output) {
  HEAD out[t] = t;
  __syncwarp();
  const float warps = out[t ^ 1];
  __syncwarp();
  out[t] = warps;
  __syncthreads();
  const float blocks = out[t ^ 33];
  __syncthreads();
  out[t] = blocks == (t ^ 32);
}
KERNEL(all_store_the_same) {  // 4 blocks
  HEAD const float sum = warp_sum(1.f);
  out[t ^ lane] = sum / 32;
  if (lane) out[t] = sum / 32;
}
KERNEL(blocks_write_halves_of_a_word) {  // 2 blocks; 1.f is 0x3f800000
  HEAD reinterpret_cast<uint16_t*>(out)[2 * t + blockIdx.x] = blockIdx.x ? 0x3f80 : 0;
}
KERNEL(last_block_adds_up) {  // 4 blocks, each thread with a fence of its own
  HEAD parts[blockIdx.x * 64 + t] = t;
  __threadfence();
  __syncthreads();
  if (t == 0) S(int)[0] = atomicAdd(arrived, 1) == gridDim.x - 1;
  __syncthreads();
  if (!S(int)[0]) return;
  float sum = 0;
  for (int i = t ^ 1; i < 256; i += 64) sum += parts[i];
  out[t] = sum == 4 * (t ^ 1);
  if (t == 0) arrived[0] = 0;
}
KERNEL(last_block_with_one_fence) {  // 4 blocks
  HEAD parts[blockIdx.x * 64 + t] = t;
  __syncthreads();
  if (t == 0) {
    __threadfence();
    S(int)[0] = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (S(int)[0]) out[t] = parts[t] + parts[64 + t] + parts[128 + t] + parts[192 + t] == 4 * t;
}
KERNEL(last_warp_adds_up) {  // 4 blocks of 2 warps, which meet in no barrier
  HEAD parts[blockIdx.x * 64 + t] = t;
  __syncwarp();
  unsigned last = 0;
  if (lane == 0) {
    __threadfence();
    last = atomicInc(arrived, 2 * gridDim.x - 1) == 2 * gridDim.x - 1;
  }
  __syncwarp();
  if (!__shfl_sync(FULL_WARP, last, 0)) return;
  for (int i = lane; i < 64; i += 32)
    out[i] = parts[i] + parts[64 + i] + parts[128 + i] + parts[192 + i] == 4 * i;
}
KERNEL(last_of_pairs_of_blocks) {  // 4 blocks: what a block learned of its pair reaches the last of all
  HEAD parts[blockIdx.x * 64 + t] = 1;
  unsigned* const places[] = {arrived + 1 + blockIdx.x / 2, arrived};
  for (unsigned* place : places) {
    __threadfence();
    __syncthreads();
    if (t == 0) S(int)[0] = atomicInc(place, 1) == 1;
    __syncthreads();
    if (!S(int)[0]) return;
  }
  out[t] = parts[t] + parts[64 + t] + parts[128 + t] + parts[192 + t] == 4;
}
KERNEL(last_block_reads_an_atomic_sum) {  // 4 blocks
  HEAD atomicAdd(parts + 64 + t, 1.f);
  __threadfence();
  __syncthreads();
  if (t == 0) S(int)[0] = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (!S(int)[0]) return;
  out[t] = parts[64 + t] == 4;
  parts[64 + t] = 0;
}
KERNEL(zeroes_the_output) {  // before each of these:
  HEAD out[t] = parts[64 + t] = 0;
}
KERNEL(blocks_add_to_the_output) {  // 4 blocks
  HEAD atomicAdd(out + t, .25f);
}
KERNEL(reads_what_a_launch_wrote) {  // 4 blocks
  HEAD if (t % 4 == int(blockIdx.x)) out[t] += parts[64 + (t ^ 1)] + 1;
}

// --- cp.async, parts of a warp, arithmetic

KERNEL(pipeline) {  // two stages of 64 floats each, copied ahead by whoever reads another's
  HEAD bool right = true;
  auto copy = [&](int tile) {
    __pipeline_memcpy_async(S(float) + tile % 2 * 64 + t, in + (t + tile) % 64, 4);
  };
  copy(0);
  __pipeline_commit();
  for (int tile = 0; tile < 5; ++tile) {
    if (tile < 4) copy(tile + 1);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const int other = t ^ 37;
    right &= S(float)[tile % 2 * 64 + other] == in[(other + tile) % 64];
    __syncthreads();
  }
  out[t] = right;
}
KERNEL(zero_fill) {  // the source lies past the input's end and is not read
  HEAD __pipeline_memcpy_async(S(float4) + t, in + 64 + 4 * t, 16, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[t] = S(float)[4 * t] == 0 && S(float)[4 * t + 3] == 0;
}
KERNEL(part_of_a_warp) {  // 48 threads
  HEAD S(float)[t] = t;
  __syncthreads();
  const unsigned mask = warp ? 0x0000ffffu : FULL_WARP;
  const float sum = __shfl_xor_sync(mask, float(t), 8);
  out[t] = S(float)[47 - t] == 47 - t && sum == (t ^ 8);
  if (t < 16) out[48 + t] = 1;
}
KERNEL(shuffles) {
  HEAD const float x = t;
  bool right = __shfl_sync(FULL_WARP, x, 3) == warp * 32 + 3;
  right &= __shfl_sync(FULL_WARP, x, 3, 8) == t / 8 * 8 + 3;
  right &= __shfl_up_sync(FULL_WARP, x, 2) == (lane < 2 ? t : t - 2);
  right &= __shfl_down_sync(FULL_WARP, x, 1, 4) == (lane % 4 == 3 ? t : t + 1);
  right &= __shfl_xor_sync(FULL_WARP, x, 5, 16) == (t ^ 5);
  right &= warp_sum(1.f) == 32 && warp_max(x) == warp * 32 + 31;
  right &= __ballot_sync(FULL_WARP, lane > 3) == 0xfffffff0u && __any_sync(FULL_WARP, lane == 7);
  right &= !__all_sync(FULL_WARP, lane == 7);
  out[t] = right;
}
KERNEL(three_dimensions) {  // 4 x 8 x 2 threads, 2 blocks in y: each writes its own half
  HEAD const int i = threadIdx.x + 4 * (threadIdx.y + 8 * threadIdx.z);
  S(int)[i] = cpucuda::lane();
  __syncthreads();
  if (int(blockIdx.y) == i / 32) out[i] = S(int)[i] == i % 32 && blockDim.y == 8 && gridDim.y == 2;
}
KERNEL(wmma_product) {  // A[i][k] = i, B[k][j] = j (given as B^T), C = 1: D = 16 i j + 1
  using namespace nvcuda::wmma;
  HEAD __half* a = S(__half) + warp * 256;           // [16][16]
  __half* b = S(__half) + 1024 + warp * 384;         // [16][24], B^T
  float* c = S(float) + 2048 + warp * 320;           // [16][20]
  for (int i = lane; i < 256; i += 32) {
    a[i] = float(i / 16);
    b[i / 16 * 24 + i % 16] = float(i / 16);
    c[i / 16 * 20 + i % 16] = 1;
  }
  __syncwarp();
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  load_matrix_sync(fa, a, 16);
  load_matrix_sync(fb, b, 24);
  load_matrix_sync(fc, c, 20, mem_row_major);
  mma_sync(fc, fa, fb, fc);
  __syncwarp();  // the lanes have read c before the store
  store_matrix_sync(c, fc, 20, mem_col_major);
  __syncwarp();
  bool right = true;
  for (int i = lane; i < 256; i += 32) right &= c[i % 16 * 20 + i / 16] == 16 * (i / 16) * (i % 16) + 1;
  out[t] = right;
}
KERNEL(half_arithmetic) {
  HEAD const __half2 a = __floats2half2_rn(1.f + t / 64.f, -2.f), b = __float2half2_rn(3.f);
  const float2 sum = __half22float2(__hadd2(a, b)), product = __half22float2(__hmul2(a, b));
  const float2 fused = __half22float2(__hfma2(a, b, a));
  bool right = sum.x == float(__half(4.f + t / 64.f)) && sum.y == 1 && product.y == -6 && fused.y == -8;
  right &= float(__half(2048.f) + __half(1.f)) == 2048;                      // rounds to even, at once
  right &= __half2float(__float2half(1.f + 3.f / 4096)) == 1.f + 1.f / 1024;  // a tie goes to even
  right &= std::isinf(__half2float(__float2half(65520.f)));
  out[t] = right;
}

struct Clean {
  const char* name;
  void (*kernel)(const float*, float*);
  dim3 grid, block;
  void (*first)(const float*, float*) = nullptr;  // in a launch before, of one block
};
#define ONE(name) {#name, name, dim3(1), dim3(64)}
#define BLOCKS(name) {#name, name, dim3(4), dim3(64)}
static const Clean LAUNCHES[] = {
    ONE(block_exchange),
    ONE(warp_exchange),
    ONE(all_lanes_store_their_sum),
    ONE(all_warps_store_the_same),
    ONE(moves_of_many_bytes),
    ONE(half_warps_meet_in_turn),
    ONE(neighbours_in_a_word),
    ONE(atomics),
    ONE(exchange_first),
    ONE(many_readers_then_a_writer),
    ONE(barrier_that_the_compiler_copies),
    ONE(converged_lanes),
    ONE(one_lane_adds_for_the_converged),
    ONE(own_output_twice),
    ONE(exchange_in_the_output),
    BLOCKS(all_store_the_same),
    {"blocks_write_halves_of_a_word", blocks_write_halves_of_a_word, dim3(2), dim3(64)},
    BLOCKS(last_block_adds_up),
    BLOCKS(last_block_with_one_fence),
    BLOCKS(last_warp_adds_up),
    BLOCKS(last_of_pairs_of_blocks),
    {"last_block_reads_an_atomic_sum", last_block_reads_an_atomic_sum, dim3(4), dim3(64), zeroes_the_output},
    {"blocks_add_to_the_output", blocks_add_to_the_output, dim3(4), dim3(64), zeroes_the_output},
    {"reads_what_a_launch_wrote", reads_what_a_launch_wrote, dim3(4), dim3(64), zeroes_the_output},
    ONE(pipeline),
    ONE(zero_fill),
    {"part_of_a_warp", part_of_a_warp, dim3(1), dim3(48)},
    ONE(shuffles),
    {"three_dimensions", three_dimensions, dim3(1, 2), dim3(4, 8, 2)},
    ONE(wmma_product),
    ONE(half_arithmetic),
};
// in and out are [64] floats. Runs the LAUNCHES entry number `which`; -1 where there is none.
extern "C" int clean(const void* in, void* out, int which, void* stream) {
  if (which >= int(sizeof LAUNCHES / sizeof *LAUNCHES)) return -1;
  const Clean& one = LAUNCHES[which];
  if (one.first)
    cpucuda::launch("first", dim3(1), dim3(64), 16 << 10, [&] { one.first((const float*)in, (float*)out); });
  return cpucuda::launch(one.name, one.grid, one.block, 16 << 10, stream,
                         [&] { one.kernel((const float*)in, (float*)out); });
}
