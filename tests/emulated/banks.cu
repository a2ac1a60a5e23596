// Accesses whose wavefronts are known by hand: `// banks: load|store requests wavefronts ideal` a warp,
// beside each. One warp, 32 KB. Source: CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x
// and later: 32 banks of 4 bytes.
#include <mma.h>

#include "ptx.cuh"

#define S(type) reinterpret_cast<type*>(smem)

__global__ void banks(float* out) {
  DYN_SMEM(smem);
  const int lane = threadIdx.x;
  for (int i = lane; i < 8192; i += 32) S(float)[i] = 0;  // banks: store 256 256 256
  __syncwarp();
  float sum = S(float)[lane];               // banks: load 1 1 1
  const __half2 pair = S(__half2)[lane + 32];  // banks: load 1 1 1
  sum += S(float)[2 * lane];                // banks: load 1 2 1
  sum += S(float)[32 * lane];               // banks: load 1 32 1
  sum += S(float)[33 * lane];               // banks: load 1 1 1
  sum += S(float)[7];                       // banks: load 1 1 1
  sum += S(float)[lane / 2 * 32];           // banks: load 1 16 1
  sum += float(S(__half)[lane]);            // banks: load 1 1 1
  sum += float(S(__half)[64 * lane]);       // banks: load 1 32 1
  sum += S(uint8_t)[lane];                  // banks: load 1 1 1
  const float2 two = S(float2)[lane];       // banks: load 1 2 2
  const float2 apart = S(float2)[16 * lane];   // banks: load 1 32 2
  const float4 four = S(float4)[lane];      // banks: load 1 4 4
  const float4 rows = S(float4)[8 * lane];  // banks: load 1 32 4
  sum += float(pair.x) + two.x + apart.y + four.x * four.w + rows.z;
  __syncwarp();
  if (lane < 8) S(float)[lane * 32] = sum;  // banks: store 1 8 1
  __syncwarp();
  if (lane == 3) S(float)[1] = sum;         // banks: store 1 1 1
  __syncwarp();
  for (int i = lane; i < 40; i += 32) S(float)[i * 32] = sum;  // banks: store 2 40 2
  __syncwarp();
  for (int i = 0; i < lane % 4; ++i) sum += S(float)[lane + 32 * i];  // banks: load 3 3 3
  __syncwarp();
  uint32_t r[4];
  const __half* half_rows = S(__half);
  ldmatrix_x4(r, half_rows + lane % 16 * 64 + lane / 16 * 8);  // banks: load 1 32 4
  ldmatrix_x4(r, half_rows + lane % 16 * 72 + lane / 16 * 8);  // banks: load 1 4 4
  ldmatrix_x4_trans(r, half_rows + lane % 16 * 64 + (lane / 16 ^ lane % 8) * 8);  // banks: load 1 4 4
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> a;
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c;
  nvcuda::wmma::load_matrix_sync(a, half_rows, 64);  // banks: load 1 32 4
  nvcuda::wmma::load_matrix_sync(a, half_rows, 72);  // banks: load 1 4 4
  nvcuda::wmma::load_matrix_sync(c, S(float), 64, nvcuda::wmma::mem_row_major);  // banks: load 4 32 8
  __syncwarp();
  nvcuda::wmma::store_matrix_sync(S(float), c, 64, nvcuda::wmma::mem_row_major);  // banks: store 4 32 8
  __syncwarp();
  nvcuda::wmma::store_matrix_sync(S(float), c, 72, nvcuda::wmma::mem_row_major);  // banks: store 4 8 8
  out[lane] = sum + r[0] + float(a.x[0]);
}
// out is [64] floats, of which 32 are written; `in` and `which` are there for the harness alone.
extern "C" int bank_patterns(const void*, void* out, int, void* stream) {
  return LAUNCH(banks, dim3(1), dim3(32), 32 << 10, stream, (float*)out);
}
