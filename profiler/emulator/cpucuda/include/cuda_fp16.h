// fp16 as gcc's _Float16: rounds to nearest even after every operation, as the hardware does.
#pragma once
#include "cpucuda.h"

struct __half {
  _Float16 v;
  __half() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  constexpr __half(T x) : v(_Float16(x)) {}
  constexpr operator float() const { return float(v); }
};
using half = __half;
struct alignas(4) __half2 {
  __half x, y;
  CPUCUDA_WHOLE(__half2)
  constexpr __half2(__half a, __half b) : x(a), y(b) {}
};
using half2 = __half2;

inline __half cpucuda_half(_Float16 v) {
  __half h;
  h.v = v;
  return h;
}
inline float __half2float(__half h) { return float(h.v); }
inline __half __float2half(float f) { return __half(f); }
inline __half __float2half_rn(float f) { return __half(f); }
inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
inline __half2 __float22half2_rn(float2 f) { return {__half(f.x), __half(f.y)}; }
inline __half2 __float2half2_rn(float f) { return {__half(f), __half(f)}; }
inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
inline __half2 make_half2(__half a, __half b) { return {a, b}; }
inline __half2 __half2half2(__half a) { return {a, a}; }
inline float2 __half22float2(__half2 h) { return {float(h.x.v), float(h.y.v)}; }
inline __half __low2half(__half2 h) { return h.x; }
inline __half __high2half(__half2 h) { return h.y; }
inline float __low2float(__half2 h) { return float(h.x.v); }
inline float __high2float(__half2 h) { return float(h.y.v); }
inline unsigned short __half_as_ushort(__half h) {
  unsigned short u;
  __builtin_memcpy(&u, &h, 2);
  return u;
}
inline __half __ushort_as_half(unsigned short u) {
  __half h;
  __builtin_memcpy(&h, &u, 2);
  return h;
}

inline __half __hadd(__half a, __half b) { return cpucuda_half(a.v + b.v); }
inline __half __hsub(__half a, __half b) { return cpucuda_half(a.v - b.v); }
inline __half __hmul(__half a, __half b) { return cpucuda_half(a.v * b.v); }
inline __half __hdiv(__half a, __half b) { return cpucuda_half(a.v / b.v); }
inline __half __hneg(__half a) { return cpucuda_half(-a.v); }
inline __half __hmax(__half a, __half b) { return a.v < b.v ? b : a; }
inline __half __hmin(__half a, __half b) { return b.v < a.v ? b : a; }
// One rounding: the product of two halves and the sum are exact enough in double.
inline __half __hfma(__half a, __half b, __half c) {
  return cpucuda_half(_Float16(double(a.v) * double(b.v) + double(c.v)));
}
inline bool __hgt(__half a, __half b) { return a.v > b.v; }
inline bool __hlt(__half a, __half b) { return a.v < b.v; }
inline __half hexp(__half a) { return __half(std::exp(float(a.v))); }
inline __half hexp2(__half a) { return __half(std::exp2(float(a.v))); }
inline __half operator+(__half a, __half b) { return __hadd(a, b); }
inline __half operator-(__half a, __half b) { return __hsub(a, b); }
inline __half operator*(__half a, __half b) { return __hmul(a, b); }
inline __half operator/(__half a, __half b) { return __hdiv(a, b); }
inline __half2 __hadd2(__half2 a, __half2 b) { return {__hadd(a.x, b.x), __hadd(a.y, b.y)}; }
inline __half2 __hsub2(__half2 a, __half2 b) { return {__hsub(a.x, b.x), __hsub(a.y, b.y)}; }
inline __half2 __hmul2(__half2 a, __half2 b) { return {__hmul(a.x, b.x), __hmul(a.y, b.y)}; }
inline __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __half2 h2exp(__half2 a) { return {hexp(a.x), hexp(a.y)}; }
inline __half2 h2exp2(__half2 a) { return {hexp2(a.x), hexp2(a.y)}; }
