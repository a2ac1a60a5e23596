// WMMA: 16x16x16, half operands, float accumulators.
#pragma once
#include "cuda_fp16.h"

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static_assert(M == 16 && N == 16 && K == 16, "only 16x16x16 has a meaning here");
  static constexpr bool operand = !std::is_same<Use, accumulator>::value;
  static_assert(operand ? std::is_same<T, half>::value
                        : std::is_same<T, half>::value || std::is_same<T, float>::value,
                "operands are half, accumulators float or half");
  static constexpr int num_elements = operand ? 16 : 8;
  T x[num_elements];
};
template <class Use, class T, class L>
inline void fill_fragment(fragment<Use, 16, 16, 16, T, L>& f, typename cpucuda::Same<T>::type v) {
  for (auto& e : f.x) e = v;
}
template <class Use, class T, class L>
__forceinline__ void load_matrix_sync(fragment<Use, 16, 16, 16, T, L>& f, const T* p, unsigned ld) {
  cpucuda::wmma_load(f.x, p, ld, std::is_same<L, row_major>::value, sizeof(T), true);
}
template <class T>
__forceinline__ void load_matrix_sync(fragment<accumulator, 16, 16, 16, T>& f, const T* p, unsigned ld,
                                      layout_t layout) {
  cpucuda::wmma_load(f.x, p, ld, layout == mem_row_major, sizeof(T), false);
}
template <class T>
__forceinline__ void store_matrix_sync(T* p, const fragment<accumulator, 16, 16, 16, T>& f, unsigned ld,
                                       layout_t layout) {
  cpucuda::wmma_store(p, f.x, ld, layout == mem_row_major, sizeof(T));
}
template <class LA, class LB>
__forceinline__ void mma_sync(fragment<accumulator, 16, 16, 16, float>& d,
                              const fragment<matrix_a, 16, 16, 16, half, LA>& a,
                              const fragment<matrix_b, 16, 16, 16, half, LB>& b,
                              const fragment<accumulator, 16, 16, 16, float>& c) {
  cpucuda::wmma_mma(d.x, &a.x[0].v, &b.x[0].v, c.x);
}

}  // namespace wmma
}  // namespace nvcuda
