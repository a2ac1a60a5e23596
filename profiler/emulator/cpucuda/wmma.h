// WMMA and matrix products.
#pragma once
#include "threads.h"

namespace cpucuda {

// D[M][N] += A[M][K] B[K][N], rows after one another.
void multiply_add(float* D, const float* A, const float* B, int M, int N, int K) {
  for (int m = 0; m < M; ++m)
    for (int k = 0; k < K; ++k) {
      const float a = A[m * K + k];
      for (int n = 0; n < N; ++n) D[m * N + n] += a * B[k * N + n];
    }
}

// WMMA 16x16x16. Element i of a lane lies where mma.m16n8k16 has it (PTX ISA, fragment figures), so that code
// which indexes .x[] meets a real layout; the layout of WMMA itself is not specified. Operands have 16 elements
// a lane, as on GPUs each value twice, in another order than accumulators: none can stand for another.
constexpr int OPERAND_ELEMENTS = 16, ACCUMULATOR_ELEMENTS = 8;
static int operand_element(int i) { return (i + 2) % ACCUMULATOR_ELEMENTS; }  // as accumulators count
static int wmma_row(int lane, int i) { return lane / 4 + 8 * (i / 2 % 2); }
static int wmma_col(int lane, int i) { return lane % 4 * 2 + i % 2 + 8 * (i / 4 % 2); }
static bool in_shared(const void* p) { return (uintptr_t)p - (uintptr_t)cta->smem < SMEM_CAP; }
static void wmma_check(const void* p, unsigned ld, size_t element, Pc pc, const char* name) {
  if ((uintptr_t)p % 32 == 0 && ld * element % 16 == 0) return;
  report(MISALIGNED, pc, 0, "%s at %p with ld %u: the pointer must be aligned to 32 bytes, the rows to 16",
         name, p, ld);
  abort_block();
}
void wmma_load(void* x, const void* p, unsigned ld, bool by_row, size_t element, bool operand) {
  const Pc pc = CALLER;
  wmma_check(p, ld, element, pc, "load_matrix_sync");
  const int lane = cur->lane;
  const char* from = (const char*)p;
  char* to = (char*)x;
  // nvcc makes one LDSM.x4 of a half operand in shared memory: each lane names a row of 16 bytes.
  const bool ldsm = operand && element == 2 && in_shared(p);
  if (ldsm) access<false>(from + (lane % 16 * ld + lane / 16 * 8) * 2, 16, pc);
  const int step = !ldsm && by_row ? 2 : 1;  // other loads by row take two neighbours at once
  for (int i = 0; i < ACCUMULATOR_ELEMENTS; i += step) {
    const int place = operand ? operand_element(i) : i;
    const int row = wmma_row(lane, place), col = wmma_col(lane, place);
    const char* at = from + (by_row ? row * ld + col : col * ld + row) * element;
    if (!ldsm) access<false>(at, step * element, pc);
    std::memcpy(to + i * element, at, step * element);
    if (operand) std::memcpy(to + (ACCUMULATOR_ELEMENTS + i) * element, at, step * element);
  }
}
void wmma_store(void* p, const void* x, unsigned ld, bool by_row, size_t element) {
  const Pc pc = CALLER;
  wmma_check(p, ld, element, pc, "store_matrix_sync");
  const int step = by_row ? 2 : 1;
  for (int i = 0; i < ACCUMULATOR_ELEMENTS; i += step) {
    const int row = wmma_row(cur->lane, i), col = wmma_col(cur->lane, i);
    char* at = (char*)p + (by_row ? row * ld + col : col * ld + row) * element;
    access<true>(at, step * element, pc);
    std::memcpy(at, (const char*)x + i * element, step * element);
  }
}
namespace {
struct WmmaOperands {
  const _Float16 *a, *b;
  const float* c;
  float* d;
};
void wmma_run(void** lanes, unsigned) {
  float A[256], B[256], D[256];
  for (int l = 0; l < WARP; ++l) {
    const auto& operands = *static_cast<WmmaOperands*>(lanes[l]);
    for (int i = 0; i < ACCUMULATOR_ELEMENTS; ++i) {
      const int place = operand_element(i), at = wmma_row(l, place) * 16 + wmma_col(l, place);
      A[at] = operands.a[i], B[at] = operands.b[i];
      D[wmma_row(l, i) * 16 + wmma_col(l, i)] = operands.c[i];
    }
  }
  multiply_add(D, A, B, 16, 16, 16);
  for (int l = 0; l < WARP; ++l)
    for (int i = 0; i < ACCUMULATOR_ELEMENTS; ++i)
      static_cast<WmmaOperands*>(lanes[l])->d[i] = D[wmma_row(l, i) * 16 + wmma_col(l, i)];
}
}  // namespace
void wmma_mma(float* d, const _Float16* a, const _Float16* b, const float* c) {
  WmmaOperands operands{a, b, c, d};
  collective_at(OP_MMA, ~0u, &operands, wmma_run, CALLER);
}

}  // namespace cpucuda
