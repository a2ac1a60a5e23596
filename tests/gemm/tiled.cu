// C = A B in tiles of 16 x 16.
#define BUG_EARLY 1
#include "common.cuh"

// A [m, k], B [k, n], C [m, n], fp32, row-major; one thread an element of C.
__global__ void tiled(const float* A, const float* B, float* C, int m, int n, int k) {
  DYN_SMEM(smem);
  float* A_smem = reinterpret_cast<float*>(smem);  // [16][16]
  float* B_smem = A_smem + 256;                    // [16][16]
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    A_smem[y * 16 + x] = row < m && k0 + x < k ? A[row * k + k0 + x] : 0;  // caught here: BUG_EARLY race
    B_smem[y * 16 + x] = k0 + y < k && col < n ? B[(k0 + y) * n + col] : 0;
    __syncthreads();  // the tile is there
    for (int i = 0; i < 16; ++i) sum += A_smem[y * 16 + i] * B_smem[i * 16 + x];
#if BUG != BUG_EARLY
    __syncthreads();  // everyone has read the tile
#endif
  }
  if (row < m && col < n) C[row * n + col] = sum;
}

extern "C" int gemm(const void* a, const void* b, void* c, int m, int n, int k, void* stream) {
  return LAUNCH(tiled, dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16), 2048, stream, (const float*)a,
                (const float*)b, (float*)c, m, n, k);
}
