// The PTX instructions that CUDA C++ has no word for, each with the meaning it has on the CPU.
//
// Source of the layouts: PTX ISA, "ldmatrix", "mma.m16n8k16" (fragment figures) and "cp.async" (src-size).
// Limit: the CPU's meaning was written from the ISA, not measured; a first run on a GPU compares the two.
#pragma once
#include "common.cuh"

// A register holds two halves; `lo` is the one with the lower column.
__device__ __forceinline__ uint32_t pack_half2(float lo, float hi) {
  const __half2 pair = __floats2half2_rn(lo, hi);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

#ifdef CPUCUDA

namespace cpucuda {

// ldmatrix .x4: lane l names row l%8 of matrix l/8, and then holds of each matrix the elements (l/4, l%4*2)
// and (l/4, l%4*2 + 1).
struct LdMatrix {
  uint16_t row[8];
  uint32_t* out;  // [4], one register a matrix
  bool transposed;
};
CPUCUDA_RAW inline void ldmatrix_run(void** lanes, unsigned) {
  for (int lane = 0; lane < 32; ++lane) {
    auto* me = static_cast<LdMatrix*>(lanes[lane]);
    for (int matrix = 0; matrix < 4; ++matrix) {
      auto at = [&](int row, int col) {
        return uint32_t(static_cast<LdMatrix*>(lanes[matrix * 8 + row])->row[col]);
      };
      const int a = lane / 4, b = lane % 4 * 2;
      me->out[matrix] = me->transposed ? at(b, a) | at(b + 1, a) << 16 : at(a, b) | at(a, b + 1) << 16;
    }
  }
}
__forceinline__ void ldmatrix(uint32_t (&out)[4], const void* row, bool transposed) {
  LdMatrix mine{{}, out, transposed};
  if ((uintptr_t)row & 15) fail("ldmatrix: the row at %p is not 16-byte aligned", row);
  ld(mine.row, row, 16, true);
  collective(OP_LDMATRIX, FULL_WARP, &mine, ldmatrix_run);
}

// mma m16n8k16: a lane's A is of row l/4 (+ 8 in odd registers), columns l%4*2 and the next (+ 8 in registers
// 2 and 3); B is the same transposed, D as the first two registers of A. Products are exact in fp32; in which
// order the hardware adds them is not specified.
struct Mma {
  float* d;           // [4]
  const uint32_t* a;  // [4]
  uint32_t b[2];
};
CPUCUDA_RAW inline float half_of(uint32_t pair, int which) {
  const uint16_t bits = uint16_t(which ? pair >> 16 : pair);
  _Float16 value;
  std::memcpy(&value, &bits, sizeof bits);
  return float(value);
}
CPUCUDA_RAW inline void mma_run(void** lanes, unsigned) {
  float A[16][16], B[16][8], D[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    auto* mma = static_cast<Mma*>(lanes[lane]);
    const int row = lane / 4, col = lane % 4 * 2;
    for (int i = 0; i < 8; ++i)
      A[row + 8 * (i / 2 % 2)][col + i % 2 + 8 * (i / 4)] = half_of(mma->a[i / 2], i % 2);
    for (int i = 0; i < 4; ++i) B[col + i % 2 + 8 * (i / 2)][row] = half_of(mma->b[i / 2], i % 2);
    for (int i = 0; i < 4; ++i) D[row + 8 * (i / 2)][col + i % 2] = mma->d[i];
  }
  multiply_add(&D[0][0], &A[0][0], &B[0][0], 16, 8, 16);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      static_cast<Mma*>(lanes[lane])->d[i] = D[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2];
}

}  // namespace cpucuda

__device__ __forceinline__ void ldmatrix_x4(uint32_t (&out)[4], const __half* row) {
  cpucuda::ldmatrix(out, row, false);
}
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&out)[4], const __half* row) {
  cpucuda::ldmatrix(out, row, true);
}
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                             uint32_t b1) {
  cpucuda::Mma mine{d, a, {b0, b1}};
  cpucuda::collective(cpucuda::OP_MMA, FULL_WARP, &mine, cpucuda::mma_run);
}
__device__ __forceinline__ void cp_async_16(void* dst, const void* src, bool exists) {
  cpucuda::cp_async(dst, src, 16, exists ? 0 : 16);
}
__device__ __forceinline__ float exp2_approx(float x) { return std::exp2(x); }

#else

// Four 8x8 matrices of halves from shared memory into the layout mma wants; `row` is this lane's 16-byte row.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&out)[4], const __half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"((uint32_t)__cvta_generic_to_shared(row))
               : "memory");
}
// The same, each matrix transposed on the way.
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&out)[4], const __half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"((uint32_t)__cvta_generic_to_shared(row))
               : "memory");
}
// d[16][8] += a[16][16] b[16][8], by one warp.
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                             uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// 16 bytes from global to shared memory, past the registers; zeros, and no read, where src does not exist.
// __pipeline_memcpy_async has the size of the zero fill as an immediate: 17 instructions where one will do.
__device__ __forceinline__ void cp_async_16(void* dst, const void* src, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(dst)),
               "l"(__cvta_generic_to_global(src)), "r"(exists ? 16 : 0)
               : "memory");
}
// One MUFU.EX2; exp2f also scales denormal results, which a softmax does not see.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#endif
