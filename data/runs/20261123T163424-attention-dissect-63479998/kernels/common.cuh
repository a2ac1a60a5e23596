// One source, two compilers: nvcc for the GPU, g++ with the headers of profiler/emulator for the CPU check.
#pragma once
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

#include "attention.h"

// ONLY builds run one stage, to find where an error enters. S and P go to o as fp32 [batch, heads, len_q,
// len_kv].
#define ONLY_ALL 0      // the whole attention
#define ONLY_QK 1       // o = scaled scores S; -inf where masked
#define ONLY_SOFTMAX 2  // o = probabilities P, normalised; 0 where masked
#define ONLY_PV 3       // every visible key has score 0: o = the mean of the visible rows of V, fp16
#ifndef ONLY
#define ONLY ONLY_ALL
#endif

// BUG builds plant the error of a rejected version in the nearest good source, so that the fix reads as a
// diff. They are macros, not an enum: `#if BUG == NAME` on an enumerator is always true.
#define BUG_NONE 0
#define BUG_V2 1               // v2b.cu: two warps share a row's m, l and O
#define BUG_V2B_SMEM 2         // v2b.cu: tiles of 170 KB
#define BUG_V2B_WARP7 3        // v2b.cu: the last warp does not compute
#define BUG_V2C_V1 4           // v2c_v4.cu: temporaries of each warp in shared memory
#define BUG_V2C_V2 5           // v2c_v4.cu: Q K instead of Q K^T, and scaled twice
#define BUG_V2C_V3_SYNCWARP 6  // v2c_v3.cu: the warp meets where the block must
#define BUG_V2C_V3_REDUCE32 7  // v2c_v3.cu: a warp sum over values that are the same in every lane
#ifndef BUG
#define BUG BUG_NONE
#endif

#ifdef CPUCUDA
#define DYN_SMEM(name) unsigned char* name = cpucuda::dyn_smem()
#define LAUNCH(kernel, grid, block, smem, stream, ...) \
  cpucuda::launch(#kernel, grid, block, smem, stream, [&] { kernel(__VA_ARGS__); })
#else
#define DYN_SMEM(name) extern __shared__ __align__(128) unsigned char name[]
// Above 48 KB of shared memory a kernel must opt in; a refusal is returned, not launched over.
template <class... P>
inline int launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t smem, void* stream, P... args) {
  cudaGetLastError();  // forgets an earlier call's error, which would be taken for this launch's
  const cudaError_t refused =
      cudaFuncSetAttribute((const void*)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem);
  if (refused != cudaSuccess) return (int)refused;
  kernel<<<grid, block, smem, (cudaStream_t)stream>>>(args...);
  return (int)cudaGetLastError();
}
#define LAUNCH(kernel, grid, block, smem, stream, ...) launch(kernel, grid, block, smem, stream, __VA_ARGS__)
#endif

constexpr int CUDA_INVALID_VALUE = 1;
constexpr unsigned FULL_WARP = 0xffffffffu;

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(FULL_WARP, v, o);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(FULL_WARP, v, o));
  return v;
}

// --- What every version does alike: sizes, mask, copies.

// Where a row's maximum starts. Finite: a row that sees no key keeps it, and exp(m_old - m_new) is then 1;
// with -infinity it would be exp(-inf + inf), which is no number.
constexpr float M_START = -FLT_MAX;

inline bool arguments_are_valid(const void* q, const void* k, const void* v, const void* o, int batch,
                                int heads, int len_q, int len_kv, float scale) {
  const bool aligned = (((uintptr_t)q | (uintptr_t)k | (uintptr_t)v | (uintptr_t)o) & 15) == 0;
  return aligned && batch > 0 && heads > 0 && len_q > 0 && len_kv > 0 && scale > 0.f;
}

// Which of the batch * heads matrices a block works on. The grid is (tiles of queries, heads, batch).
__device__ __forceinline__ size_t head_of_block() { return (size_t)blockIdx.z * gridDim.y + blockIdx.y; }

// Query i sees the keys 0 .. visible_keys - 1.
__device__ __forceinline__ int visible_keys(int i, int len_q, int len_kv, int causal) {
  return causal ? max(0, min(len_kv, i + 1 + len_kv - len_q)) : len_kv;
}

// Starts the copy of rows `first` .. of src [len, D] to dst [ROWS][LD] in shared memory, 16 bytes (8 halves)
// at a time. Past the end the last row is repeated: no read out of bounds, and the mask leaves it out.
template <int ROWS, int D, int LD, int THREADS>
__device__ __forceinline__ void copy_rows_async(__half* dst, const __half* src, int first, int len) {
#pragma unroll
  for (int i = threadIdx.x; i < ROWS * D / 8; i += THREADS) {
    const int row = i / (D / 8), col = i % (D / 8) * 8;
    __pipeline_memcpy_async(dst + row * LD + col, src + (size_t)min(first + row, len - 1) * D + col, 16);
  }
}

// --- What the ONLY builds add to a version; nothing is left of it in the others.

// The builds whose output is a stage's own matrix: every key is visited, since every element is written.
constexpr bool STAGE_BUILD = ONLY == ONLY_QK || ONLY == ONLY_SOFTMAX;

__device__ __forceinline__ int keys_to_visit(int last_row, int len_q, int len_kv, int causal) {
  return STAGE_BUILD ? len_kv : visible_keys(last_row, len_q, len_kv, causal);
}
__device__ __forceinline__ float mask_score(float score, int key, int visible) {
  return key >= visible ? -INFINITY : ONLY == ONLY_PV ? 0.f : score;
}
// Row `row` of the stage's matrix, fp32 [batch * heads, len_q, len_kv] in the place of O; NULL past len_q.
__device__ __forceinline__ float* stage_row(void* o, int row, int len_q, int len_kv) {
  if (!STAGE_BUILD || row >= len_q) return nullptr;
  return static_cast<float*>(o) + (head_of_block() * len_q + row) * len_kv;
}
template <int STAGE>
__device__ __forceinline__ void stage_store(float* row, int key, int len_kv, float value) {
  if (ONLY == STAGE && row && key < len_kv) row[key] = value;
}
// P gets every rescale that O gets. A thread rescales what it stored itself: keys first, first + step, ...
__device__ __forceinline__ void stage_rescale(float* row, int first, int step, int keys, float factor) {
  if (ONLY == ONLY_SOFTMAX && row)
    for (int key = first; key < keys; key += step) row[key] *= factor;
}
