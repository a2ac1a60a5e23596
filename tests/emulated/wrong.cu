// Kernels that do nothing forbidden and whose numbers are wrong: no element of out may pass for 1.
#include <mma.h>

#include "common.cuh"

#define KERNEL(name) __global__ void name([[maybe_unused]] const float* in, [[maybe_unused]] float* out)

KERNEL(maximum_with_no_start) {  // one that starts far below all scores is right by chance
  float m, l = 0;
  for (int i = 0; i < 4; ++i) {
    const float m_new = fmaxf(m, in[i]);
    l = l * __expf(m - m_new) + __expf(in[i] - m_new);
    m = m_new;
  }
  out[threadIdx.x] = l > 1 && l < 4;
}
KERNEL(sum_with_no_start) {  // of many values, on the stack
  float sums[64];
  for (int i = 0; i < int(blockDim.x); ++i) sums[(i * 7) % 64] += in[i];
  out[threadIdx.x] = sums[threadIdx.x % 64] * 0 + 1;
}
KERNEL(accumulator_for_an_operand) {  // their elements are of other places of the matrix
  using namespace nvcuda::wmma;
  DYN_SMEM(smem);
  __half* unit = reinterpret_cast<__half*>(smem);                 // [16][16]
  float* product = reinterpret_cast<float*>(smem + 512);         // [16][16]
  for (int i = threadIdx.x; i < 256; i += 64) unit[i] = float(i / 16 == i % 16), product[i] = i;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  fragment<matrix_a, 16, 16, 16, half, row_major> a;
  fragment<matrix_b, 16, 16, 16, half, row_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  load_matrix_sync(b, unit, 16);
  load_matrix_sync(c, product, 16, mem_row_major);
  for (int i = 0; i < a.num_elements; ++i) a.x[i] = __float2half(c.x[i % c.num_elements]);
  fill_fragment(c, 0.f);
  mma_sync(c, a, b, c);
  __syncwarp();
  store_matrix_sync(product, c, 16, mem_row_major);
  __syncwarp();
  float right = 1;
  for (int i = 0; i < 256; ++i) right *= product[i] == i;
  out[threadIdx.x] = out[threadIdx.x + 32] = right;
}

static void (*const LAUNCHES[])(const float*, float*) = {maximum_with_no_start, sum_with_no_start,
                                                         accumulator_for_an_operand};
extern "C" int wrong(const void* in, void* out, int which, void* stream) {
  return cpucuda::launch("wrong", dim3(1), dim3(64), 1536, stream,
                         [&] { LAUNCHES[which]((const float*)in, (float*)out); });
}
