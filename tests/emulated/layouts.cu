// Where wgmma and TMA find and leave their operands: one product, or one copy of a box, on an image of shared
// memory.
#include "hopper.cuh"

constexpr int IMAGE = 48 << 10;  // bytes of shared memory that the caller sees
struct Boxes {
  TensorMap map;
  int x, y, z;
  uint32_t bytes;
};

__device__ __forceinline__ void take_image(unsigned char* smem, const uint4* image) {
  for (int i = threadIdx.x; i < IMAGE / 16; i += WARPGROUP) reinterpret_cast<uint4*>(smem)[i] = image[i];
  fence_proxy_async();
  __syncthreads();
}
// out [128][R]: the registers of a product of [64][16] by [16][2 R] whose accumulators start as 0.
template <int R, int TRANS_B>
__global__ void product(const uint4* image, const uint32_t* operand, float* out, uint64_t a, uint64_t b) {
  TILE_SMEM(smem);
  take_image(smem, image);
  float d[R];
  uint32_t registers[4] = {};
  if (operand)
    for (int i = 0; i < 4; ++i) registers[i] = operand[threadIdx.x * 4 + i];
  wgmma_fence(d, registers);
  if (operand)
    wgmma_m64k16<TRANS_B>(d, registers, b, 0);
  else
    wgmma_m64k16<TRANS_B>(d, a, b, 0);
  wgmma_commit();
  wgmma_wait<0>(d);
  for (int i = 0; i < R; ++i) out[threadIdx.x * R + i] = d[i];
}
__global__ void box_to_image(const __grid_constant__ Boxes box, uint4* image) {
  TILE_SMEM(smem);
  uint64_t* const bar = reinterpret_cast<uint64_t*>(smem + IMAGE);
  for (int i = threadIdx.x; i < IMAGE / 16; i += WARPGROUP) reinterpret_cast<uint4*>(smem)[i] = uint4{1, 1, 1, 1};
  if (threadIdx.x == 0) mbarrier_init(bar, 1);
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(bar, box.bytes);
    tma_load(smem, &box.map, bar, box.x, box.y, box.z);
  }
  mbarrier_wait(bar, 0);
  for (int i = threadIdx.x; i < IMAGE / 16; i += WARPGROUP) image[i] = reinterpret_cast<uint4*>(smem)[i];
}
__global__ void image_to_box(const __grid_constant__ Boxes box, const uint4* image) {
  TILE_SMEM(smem);
  take_image(smem, image);
  if (threadIdx.x == 0) {
    tma_store(&box.map, smem, box.x, box.y, box.z);
    tma_store_commit();
    tma_store_wait_read();
  }
}

template <int TRANS_B>
int launch_product(const void* image, const void* operand, void* out, uint64_t a, uint64_t b, int n, void* stream) {
  const auto of = [&](auto kernel) {
    return LAUNCH(kernel, dim3(1), dim3(WARPGROUP), IMAGE, stream, (const uint4*)image, (const uint32_t*)operand,
                  (float*)out, a, b);
  };
  return n == 32 ? of(product<16, TRANS_B>) : of(product<64, TRANS_B>);
}
// The descriptors' four fields: start, leading and stride in bytes, the swizzle. `operand`: A's registers, or
// NULL.
extern "C" int multiply(const void* image, const void* operand, void* out, int a_start, int a_leading, int a_stride,
                        int b_start, int b_leading, int b_stride, int swizzle, int trans_b, int n, void* stream) {
  constexpr int BASE = 1024;  // of the shared window
  const uint64_t a = matrix_descriptor(BASE + a_start, a_leading, a_stride, Swizzle(swizzle));
  const uint64_t b = matrix_descriptor(BASE + b_start, b_leading, b_stride, Swizzle(swizzle));
  return trans_b ? launch_product<1>(image, operand, out, a, b, n, stream)
                 : launch_product<0>(image, operand, out, a, b, n, stream);
}
extern "C" int copy_box(const void* from, void* to, int is_load, int columns, int rows, int matrices, int box_columns,
                        int box_rows, int swizzle, int x, int y, int z, void* stream) {
  Boxes box{{}, x, y, z, box_bytes(box_columns, box_rows)};
  if (const int error = make_tensor_map(&box.map, is_load ? from : to, columns, rows, matrices, box_columns, box_rows,
                                        Swizzle(swizzle)))
    return error;
  return is_load ? LAUNCH(box_to_image, dim3(1), dim3(WARPGROUP), IMAGE + 8, stream, box, (uint4*)to)
                 : LAUNCH(image_to_box, dim3(1), dim3(WARPGROUP), IMAGE, stream, box, (const uint4*)from);
}
