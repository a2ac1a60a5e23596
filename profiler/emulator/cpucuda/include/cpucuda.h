// cpucuda: what CUDA C++ means on a CPU, so that g++ compiles a kernel and its correctness is checked with no
// GPU.
//
// A CUDA thread is a fiber; warps and lanes run in order or in a seeded random order; shared memory starts as
// NaN and is shadowed, so that races, uninitialised and out-of-bounds accesses and cp.async misuse are
// reported, not only computed wrong. Functions that tell the runtime of an access are always inlined: their
// return address then lies in the kernel, and a defect carries the kernel's line.
#pragma once
#define CPUCUDA 1
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
// The bound becomes that many no-ops before the kernel's first instruction, and the blocks an SM shall run as
// many behind it, with a record of where they begin: an attribute may depend on template parameters, as the
// bound does. runtime.cpp counts them at a launch.
#define __launch_bounds__(...) \
  CPUCUDA_PADDED(CPUCUDA_FIRST(__VA_ARGS__, 0), CPUCUDA_SECOND(__VA_ARGS__, 0, 0))
#define CPUCUDA_PADDED(n, m) __attribute__((patchable_function_entry(n + m, n)))
#define CPUCUDA_FIRST(first, ...) (first)
#define CPUCUDA_SECOND(first, second, ...) (second)
#define __cluster_dims__(...) static_assert(false, "use LAUNCH_CLUSTER: the CPU does not see this attribute");
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static_assert(false, "use DYN_SMEM: static __shared__ has no shadow");
#define CPUCUDA_RAW __attribute__((no_sanitize("thread")))  // the emulator's own accesses, not the kernel's

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

// Vector types are read and written whole, as the GPU does: as plain structs the compiler would split an
// access of 16 bytes into four of 4, and the bank model with it.
namespace cpucuda {
typedef uint16_t __attribute__((may_alias)) Whole2;
typedef uint32_t __attribute__((may_alias)) Whole4;
typedef uint64_t __attribute__((may_alias)) Whole8;
typedef uint64_t __attribute__((may_alias, vector_size(16))) Whole16;
template <class T>
__forceinline__ void move_whole(T* to, const T* from) {
  if constexpr (sizeof(T) == 2) *reinterpret_cast<Whole2*>(to) = *reinterpret_cast<const Whole2*>(from);
  if constexpr (sizeof(T) == 4) *reinterpret_cast<Whole4*>(to) = *reinterpret_cast<const Whole4*>(from);
  if constexpr (sizeof(T) == 8) *reinterpret_cast<Whole8*>(to) = *reinterpret_cast<const Whole8*>(from);
  if constexpr (sizeof(T) == 16) *reinterpret_cast<Whole16*>(to) = *reinterpret_cast<const Whole16*>(from);
  if constexpr (sizeof(T) == 32) {  // the GPU's widest is 16
    reinterpret_cast<Whole16*>(to)[0] = reinterpret_cast<const Whole16*>(from)[0];
    reinterpret_cast<Whole16*>(to)[1] = reinterpret_cast<const Whole16*>(from)[1];
  }
}
}  // namespace cpucuda
#define CPUCUDA_WHOLE(T)                                                 \
  T() = default;                                                         \
  __forceinline__ T(const T& from) { cpucuda::move_whole(this, &from); } \
  __forceinline__ T& operator=(const T& from) {                          \
    cpucuda::move_whole(this, &from);                                    \
    return *this;                                                        \
  }
#define CPUCUDA_VECTORS(T, name, bytes)                                 \
  struct alignas(2 * bytes) name##2 {                                   \
    T x, y;                                                             \
    CPUCUDA_WHOLE(name##2)                                              \
    constexpr name##2(T a, T b) : x(a), y(b) {}                         \
  };                                                                    \
  struct name##3 { T x, y, z; };                                        \
  struct alignas(bytes == 8 ? 16 : 4 * bytes) name##4 {                 \
    T x, y, z, w;                                                       \
    CPUCUDA_WHOLE(name##4)                                              \
    constexpr name##4(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}   \
  };                                                                    \
  constexpr name##2 make_##name##2(T a, T b) { return {a, b}; }         \
  constexpr name##3 make_##name##3(T a, T b, T c) { return {a, b, c}; } \
  constexpr name##4 make_##name##4(T a, T b, T c, T d) { return {a, b, c, d}; }
CPUCUDA_VECTORS(signed char, char, 1)
CPUCUDA_VECTORS(unsigned char, uchar, 1)
CPUCUDA_VECTORS(short, short, 2)
CPUCUDA_VECTORS(unsigned short, ushort, 2)
CPUCUDA_VECTORS(int, int, 4)
CPUCUDA_VECTORS(unsigned, uint, 4)
CPUCUDA_VECTORS(float, float, 4)
CPUCUDA_VECTORS(double, double, 8)
#undef CPUCUDA_VECTORS
using cudaStream_t = void*;
using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0, cudaErrorInvalidValue = 1;

namespace cpucuda {
// Lanes that meet are in the same of these.
enum Op : int {
  OP_NONE,
  OP_SYNCWARP,
  OP_SHFL,
  OP_SHFL_XOR,
  OP_SHFL_DOWN,
  OP_SHFL_UP,
  OP_VOTE,
  OP_MMA,
  OP_LDMATRIX
};
// Constant for as long as a thread's code runs. By value: reading them from memory would be one more access
// to check.
__attribute__((const)) uint3 thread_index();
__attribute__((const)) uint3 block_index();
__attribute__((const)) dim3 block_size();
__attribute__((const)) dim3 grid_size();
__attribute__((const)) int lane();
__attribute__((const)) unsigned char* dyn_smem();

// `code` is the kernel's address, which its launch bound is known by; null where it is not given. LAUNCH gives
// the kernel's name alone: cpu_library.py adds the address and a note of the arguments to its expansion.
// `stream` is null where the launch does not say which it is for.
int launch_raw(const char* kernel, const void* code, dim3 grid, dim3 block, size_t smem,
               const cudaStream_t* stream, void (*body)(const void*), const void* argument);
template <class F>
inline int launch_on(const cudaStream_t* stream, const char* kernel, const void* code, dim3 grid, dim3 block,
                     size_t smem, const F& body) {
  return launch_raw(
      kernel, code, grid, block, smem, stream, [](const void* p) { (*static_cast<const F*>(p))(); }, &body);
}
// Runs every block; returns a cudaError_t. body() is the call of the kernel.
template <class F>
inline int launch(const char* kernel, const void* code, dim3 grid, dim3 block, size_t smem,
                  cudaStream_t stream, const F& body) {
  return launch_on(&stream, kernel, code, grid, block, smem, body);
}
template <class F>
inline int launch(const char* kernel, const void* code, dim3 grid, dim3 block, size_t smem, const F& body) {
  return launch_on(nullptr, kernel, code, grid, block, smem, body);
}
template <class F>
inline int launch(const char* kernel, dim3 grid, dim3 block, size_t smem, cudaStream_t stream,
                  const F& body) {
  return launch_on(&stream, kernel, nullptr, grid, block, smem, body);
}
template <class F>
inline int launch(const char* kernel, dim3 grid, dim3 block, size_t smem, const F& body) {
  return launch_on(nullptr, kernel, nullptr, grid, block, smem, body);
}
// Keeps what the next launch passes to its kernel: bytes as its parameters have them. kind: 'p', a pointer; 'v',
// a value; 'u', a class with a destructor, whose bytes say nothing to a GPU.
void note_argument(char kind, const void* bytes, size_t size);
template <class... P>
struct NotedKernel {
  void (*kernel)(P...);
  CPUCUDA_RAW const void* operator()(P... arguments) const {
    (note_argument(std::is_pointer_v<P>                 ? 'p'
                   : std::is_trivially_destructible_v<P> ? 'v'
                                                         : 'u',
                   __builtin_addressof(arguments), sizeof(P)),
     ...);
    return reinterpret_cast<const void*>(kernel);
  }
};
// The kernel's address, once its arguments are noted: with_arguments(kernel)(arguments...).
template <class... P>
NotedKernel<P...> with_arguments(void (*kernel)(P...)) {
  return {kernel};
}

void syncthreads(const char* file, int line, int place);
void threadfence();
unsigned activemask(int place);
void syncwarp(unsigned mask);
uint64_t shuffle(Op op, unsigned mask, uint64_t value, int from);
// The lanes of `mask` meet; the last to come runs run(slots) once, with slots[lane] = that lane's payload.
void collective(Op op, unsigned mask, void* payload, void (*run)(void** slots, unsigned mask));
[[noreturn]] void fail(const char* format, ...)
    __attribute__((format(printf, 1, 2)));  // misuse: ends the run

// cp.async of 4, 8 or 16 bytes, the last `zeros` of which are zeros and not read.
void cp_async(void* dst, const void* src, size_t bytes, size_t zeros);
void cp_commit();
void cp_wait(int keep);

// Accesses that an intrinsic makes for this lane: checked, and counted in the bank model.
void ld(void* to, const void* from, size_t bytes, bool bank);  // from shared or global memory to a local
void st(void* to, const void* from, size_t bytes);             // from a local to shared or global memory
void row16(const void* p);                      // reads this lane's 16-byte row of an ldmatrix, moves nothing
// An atomic, which the caller then does; `reads`: it computes with the old value.
void atomic_mark(const void* p, size_t bytes, bool reads);

void multiply_add(float* D, const float* A, const float* B, int M, int N,
                  int K);  // D[M][N] += A[M][K] B[K][N]
void wmma_load(void* x, const void* p, unsigned ld, bool by_row, size_t element, bool operand);
void wmma_store(void* p, const void* x, unsigned ld, bool by_row, size_t element);
void wmma_mma(float* d, const _Float16* a, const _Float16* b, const float* c);

template <class T>
CPUCUDA_RAW __forceinline__ T shfl(Op op, unsigned mask, T v, int from) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &v, sizeof v);
  bits = shuffle(op, mask, bits, from);
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}
struct Vote {
  unsigned own, all;
};
CPUCUDA_RAW inline void vote_run(void** slots, unsigned mask) {
  unsigned all = 0;
  for (int l = 0; l < 32; ++l)
    if (mask >> l & 1) all |= (static_cast<Vote*>(slots[l])->own & 1u) << l;
  for (int l = 0; l < 32; ++l)
    if (mask >> l & 1) static_cast<Vote*>(slots[l])->all = all;
}
template <class T>
struct Same {
  using type = T;
};
}  // namespace cpucuda

#define threadIdx (cpucuda::thread_index())
#define blockIdx (cpucuda::block_index())
#define blockDim (cpucuda::block_size())
#define gridDim (cpucuda::grid_size())
#define warpSize 32

// The counter tells two barriers on one line apart, and not the copies that the compiler makes of one.
#define __syncthreads() cpucuda::syncthreads(__FILE__, __LINE__, __COUNTER__)
__forceinline__ void __syncwarp(unsigned mask = ~0u) { cpucuda::syncwarp(mask); }
__forceinline__ void __threadfence() { cpucuda::threadfence(); }
__forceinline__ void __threadfence_system() { cpucuda::threadfence(); }
inline void __threadfence_block() {}  // a thread's accesses stay in order; other blocks see nothing of it

// Shuffles within segments of `width` lanes; a source outside the segment is the lane itself.
template <class T>
__forceinline__ T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  const int segment = cpucuda::lane() & ~(width - 1);
  return cpucuda::shfl(cpucuda::OP_SHFL, mask, v, segment + (from & (width - 1)));
}
template <class T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  const int lane = cpucuda::lane(), from = lane ^ bits;
  return cpucuda::shfl(cpucuda::OP_SHFL_XOR, mask, v, from / width > lane / width ? lane : from);
}
template <class T>
__forceinline__ T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const int lane = cpucuda::lane(), from = lane + int(by);
  return cpucuda::shfl(cpucuda::OP_SHFL_DOWN, mask, v, from / width != lane / width ? lane : from);
}
template <class T>
__forceinline__ T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const int lane = cpucuda::lane(), from = lane - int(by);
  return cpucuda::shfl(cpucuda::OP_SHFL_UP, mask, v, from < 0 || from / width != lane / width ? lane : from);
}
__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate) {
  cpucuda::Vote vote{predicate != 0, 0};
  cpucuda::collective(cpucuda::OP_VOTE, mask, &vote, cpucuda::vote_run);
  return vote.all;
}
__forceinline__ int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
__forceinline__ int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}
// The lanes that come to this call before any of them can go on: the others have ended, wait for lanes or at
// a barrier, or are in another __activemask. It is the most that a GPU can give; it promises no more than the
// calling lane itself, so no lane may count on another to be there.
#define __activemask() cpucuda::activemask(__COUNTER__)

// Threads switch at synchronisations and before accesses only, so the read and the write behind the mark are
// one. They are not inlined: in the kernel they would be checked as plain accesses.
#define CPUCUDA_ATOMIC(name, reads, next)                                             \
  template <class T>                                                                  \
  CPUCUDA_RAW __noinline__ T cpucuda_##name(T* p, T v, [[maybe_unused]] T expected) { \
    const T old = *p;                                                                 \
    *p = next;                                                                        \
    return old;                                                                       \
  }                                                                                   \
  template <class T>                                                                  \
  __forceinline__ T name(T* p, typename cpucuda::Same<T>::type v) {                   \
    cpucuda::atomic_mark(p, sizeof(T), reads);                                        \
    return cpucuda_##name<T>(p, v, v);                                                \
  }
CPUCUDA_ATOMIC(atomicAdd, true, old + v)
CPUCUDA_ATOMIC(atomicSub, true, old - v)
CPUCUDA_ATOMIC(atomicMax, true, old > v ? old : v)
CPUCUDA_ATOMIC(atomicMin, true, old < v ? old : v)
CPUCUDA_ATOMIC(atomicAnd, true, (old & v))
CPUCUDA_ATOMIC(atomicOr, true, (old | v))
CPUCUDA_ATOMIC(atomicXor, true, (old ^ v))
CPUCUDA_ATOMIC(atomicInc, true, old >= v ? 0 : old + 1)
CPUCUDA_ATOMIC(atomicDec, true, old == 0 || old > v ? v : old - 1)
CPUCUDA_ATOMIC(atomicExch, false, v)  // whether the old value is used cannot be seen
CPUCUDA_ATOMIC(atomicSwap, true, old == expected ? v : old)
#undef CPUCUDA_ATOMIC
template <class T>
__forceinline__ T atomicCAS(T* p, typename cpucuda::Same<T>::type expected,
                            typename cpucuda::Same<T>::type v) {
  cpucuda::atomic_mark(p, sizeof(T), true);
  return cpucuda_atomicSwap<T>(p, v, expected);
}

template <class T>
__forceinline__ T __ldg(const T* p) {
  return *p;
}
template <class T>
__forceinline__ T __ldcs(const T* p) {
  return *p;
}
template <class T>
__forceinline__ T __ldcg(const T* p) {
  return *p;
}
template <class T>
__forceinline__ void __stcg(T* p, T v) {
  *p = v;
}
template <class T>
__forceinline__ void __stcs(T* p, T v) {
  *p = v;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  return std::common_type_t<A, B>(a) < std::common_type_t<A, B>(b) ? b : a;
}
template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  return std::common_type_t<A, B>(b) < std::common_type_t<A, B>(a) ? b : a;
}
inline float __expf(float x) { return std::exp(x); }
inline float __exp2f(float x) { return std::exp2(x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __frcp_rn(float x) { return 1.f / x; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float rsqrtf(float x) { return 1.f / std::sqrt(x); }
inline float __saturatef(float x) { return x > 0.f ? (x < 1.f ? x : 1.f) : 0.f; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __float2int_rn(float x) { return int(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return int(x); }
inline float __int2float_rn(int x) { return float(x); }
inline int __float_as_int(float f) {
  int i;
  __builtin_memcpy(&i, &f, 4);
  return i;
}
inline unsigned __float_as_uint(float f) {
  unsigned i;
  __builtin_memcpy(&i, &f, 4);
  return i;
}
inline float __int_as_float(int i) {
  float f;
  __builtin_memcpy(&f, &i, 4);
  return f;
}
inline float __uint_as_float(unsigned i) {
  float f;
  __builtin_memcpy(&f, &i, 4);
  return f;
}
// Each of the selector's four nibbles takes a byte of b:a (CUDA math API, "__byte_perm").
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = uint64_t(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> (4 * i) & 15, byte = unsigned(bytes >> (8 * (nibble & 7)) & 255);
    result |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * i);
  }
  return result;
}
// An address in shared memory as PTX has it. Where a kernel passes it on to inline PTX, ptx.cuh takes the
// pointer instead.
inline size_t __cvta_generic_to_shared(const void* p) {
  return size_t((const unsigned char*)p - cpucuda::dyn_smem());
}
