// What changes says of each kernel between the builds with and without -DNEW is in its name, in front of two
// underscores: the class that concerns most. tests/sass/test_code_changes.py compiles it, with --extended-lambda.
#ifdef NEW
#define IF_NEW(a, b) a
constexpr int STEPS = 8, MORE_STEPS = 16;
#else
#define IF_NEW(a, b) b
constexpr int STEPS = 4, MORE_STEPS = 4;
#endif

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace { __global__ void same__hidden(float *x) { x[threadIdx.x] *= 2.f; } }
void launch(float *x) { same__hidden<<<1, 32>>>(x); }

extern "C" {

__global__ void same__dead_code(float *x) { x[threadIdx.x] += 1.f; IF_NEW(if (0) x[1] = 2.f;, ) }

__global__ void same__moved_lines(float *x, int n) {
  IF_NEW(



  , )
  for (int i = 0; i < n; i++) x[i] = x[i] * x[i + 1];
}

__global__ void same__dead_value(const float *a, float *o, int n) {
  float unused = 0.f, s = 0.f;
  for (int i = 0; i < n; i++) { IF_NEW(unused += a[i] * s;, unused -= 1.f;) s += a[i]; }
  o[0] = s;
}

__global__ void IF_NEW(renamed__new, renamed__old)(double *x) { x[threadIdx.x] = x[threadIdx.x + 7] * 3.0; }

__global__ void constants__factor(float *x) { x[threadIdx.x] *= IF_NEW(5.f, 3.f); }
__global__ void constants__offset(const float *x, float *o) { o[threadIdx.x] = x[threadIdx.x + IF_NEW(64, 32)]; }
__global__ void constants__limit(int *x) {
#pragma unroll 1
  for (int i = 0; i < IF_NEW(100, 99); i++) x[i * threadIdx.x] += i;
}
__device__ const float TABLE[8] = {1.f, IF_NEW(7.f, 2.f), 3.f, 4.f, 5.f, 6.f, 7.f, 8.f};
__global__ void constants__compared(const int *a, int *o) { if (a[threadIdx.x] > IF_NEW(17, 16)) o[threadIdx.x] = 1; }

__global__ void opcodes__function(float *x) { x[threadIdx.x] = IF_NEW(rsqrtf, __sinf)(x[threadIdx.x]); }
__global__ void opcodes__in_a_loop(const float *a, float *o, int n) {
  float s = 0.f;
#pragma unroll 1
  for (int i = 0; i < n; i++) s += a[i] IF_NEW(* __expf(s), );
  o[0] = s;
}
__global__ void opcodes__integer(int *x) { x[threadIdx.x] = x[threadIdx.x] IF_NEW(^, +) x[threadIdx.x + 1]; }

__global__ void operands__exchanged(const float *a, float *o, int n) {
  float s = 0.f, m = 1.f;
  for (int i = 0; i < n; i++) { float v = a[i]; IF_NEW(s = fmaxf(s, v); m += v;, s += v; m = fmaxf(m, v);) }
  o[0] = s; o[1] = m;
}
__global__ void operands__swapped(const float *a, float *o, int n) {
  float s = 0.f, m = 1.f;
#pragma unroll 1
  for (int i = 0; i < n; i++) { float v = a[i]; IF_NEW(s += v * s - m, s += v * m - s); m = fmaxf(m, v); }
  o[0] = s; o[1] = m;
}
__global__ void operands__stored(const float *a, float *o) {
  float x = a[threadIdx.x] * 2.f, y = a[threadIdx.x + 64] + 3.f;
  o[threadIdx.x] = IF_NEW(y, x); o[threadIdx.x + 64] = IF_NEW(x, y);
}

__global__ void memory_width__2(IF_NEW(float2, float) *o, const IF_NEW(float2, float) *a) {
  o[threadIdx.x] = a[threadIdx.x];
}
__global__ void memory_width__4(IF_NEW(float4, float) *__restrict__ o, const IF_NEW(float4, float) *a, int n) {
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += 64) o[i] = a[i];
}
__global__ void memory_width__half(IF_NEW(short, int) *__restrict__ o, const IF_NEW(short, int) *a, int n) {
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += 64) o[i] = a[i];
}

// Its name ends in _0 where what differs is in no loop.
#define LOOP(name, parameters, work)                                                                          \
  __global__ void name(parameters, int n) {                                                                   \
    float s = 0.f;                                                                                            \
    _Pragma("unroll 1") for (int i = 0; i < n; i++) { work }                                                  \
    o[threadIdx.x] = s;                                                                                       \
  }
#define AND ,
LOOP(constants__wide, const float *a AND float *o, s = s * IF_NEW(0.25f, 0.5f) + a[i];)
LOOP(constants__logic, const int *a AND float *o, s += (a[i] IF_NEW(&, ^) a[i + 77]);)
LOOP(constants__barrier, const float *a AND float *o,
     s += a[i]; asm volatile("bar.sync " IF_NEW("3", "2") ", 64;" ::: "memory"); s *= a[i + n];)
LOOP(operands__difference, const float *a AND float *o,
     float l = a[i] AND r = a[i + 99]; s += IF_NEW(__fsub_rn(r AND l), __fsub_rn(l AND r)) * l;)
LOOP(operands__predicate, const float *a AND float *o, float v = a[i]; if (IF_NEW(!, ) (v > 7.f)) s += v;)
LOOP(operands__minimum, const float *a AND float *o, s = IF_NEW(fmaxf, fminf)(s AND a[i]);)
LOOP(opcodes__rounding, const float *a AND float *o, s = IF_NEW(__fadd_rz, __fadd_rn)(s AND a[i]);)
LOOP(opcodes__compared, const float *a AND float *o, float v = a[i]; if (v IF_NEW(>=, >) 7.f) s += v;)
LOOP(opcodes__either, const float *a AND float *o,
     float v = a[i] AND w = a[i + 99]; s += (v > 7.f IF_NEW(||, &&) w < 3.f) ? v : 1.f;)
LOOP(opcodes__cached, const float *a AND float *o, s += IF_NEW(__ldcg(a + i), __ldcv(a + i));)
LOOP(opcodes__shift, const int *a AND float *o, s += float(IF_NEW(unsigned(a[i]), a[i]) >> (threadIdx.x & 7));)
LOOP(opcodes__scope, int *a AND float *o, IF_NEW(atomicAdd_system, atomicAdd)(a + (i & 15), 1);)
LOOP(opcodes__hoisted, const volatile float *a AND float *o, s += IF_NEW(1.f, a[0]) * i; IF_NEW(if (!i) s += a[0];, ))
LOOP(opcodes__fence, float *a AND float *o, a[i] = i; IF_NEW(__threadfence_system, __threadfence)(); a[i + n] = i;)

__global__ void operands__minus_0(const int *a, int *o) {
  int s = a[threadIdx.x];
#pragma unroll
  for (int d = 1; d < 32; d *= 2) s = __shfl_xor_sync(~0u, s, d) IF_NEW(-, +) s;
  o[threadIdx.x] = s;
}
__global__ void operands__thread_0(const int *a, int *o) { o[blockIdx.x] = a[IF_NEW(threadIdx.y, threadIdx.x)]; }
__global__ void operands__far_0(const float *a, const float *b, float *o, float k) {
  float x = a[threadIdx.x], y = b[threadIdx.x];
#pragma unroll
  for (int i = 0; i < 9; i++) { x = __fmul_rn(x, k); y = __fmul_rn(y, k); }
  o[threadIdx.x] = x; o[threadIdx.x + 99] = IF_NEW(y - x, x - y);
}
__global__ void opcodes__shuffle_0(const int *a, int *o) {
  o[threadIdx.x] = IF_NEW(__shfl_down_sync, __shfl_up_sync)(~0u, a[threadIdx.x], 3);
}
__global__ void opcodes__reduction_0(const int *a, int *o) {
  o[threadIdx.x] = IF_NEW(__reduce_max_sync, __reduce_add_sync)(~0u, a[threadIdx.x]);
}
__global__ void opcodes__floor_0(const float *a, int *o) {
  o[threadIdx.x] = IF_NEW(__float2int_ru, __float2int_rd)(a[threadIdx.x]);
}
__global__ void __launch_bounds__(IF_NEW(512, 256)) opcodes__and_bounds_0(const float *a, float *o) {
  o[threadIdx.x] = IF_NEW(__fadd_rz, __fadd_rn)(a[threadIdx.x], a[0]);
}
__global__ void opcodes__half(const IF_NEW(__nv_bfloat162, __half2) *a, IF_NEW(__nv_bfloat162, __half2) *o, int n) {
  auto s = a[threadIdx.x];
#pragma unroll 1
  for (int i = 0; i < n; i++) s = __hfma2(s, a[i], s);
  o[threadIdx.x] = s;
}
__global__ void opcodes__dot(const IF_NEW(unsigned, int) *a, IF_NEW(unsigned, int) *o, int n) {
  IF_NEW(unsigned, int) s = 0;
#pragma unroll 1
  for (int i = 0; i < n; i++) s = __dp4a(a[i], a[i + 99], s);
  o[threadIdx.x] = s;
}
// Several tables of jumps: a case more is no loop more.
__global__ void opcodes__case(const int *op, const float *a, float *o, int n) {
  float s = 1.f;
#pragma unroll 1
  for (int i = 0; i < n; i++) {
    float v = a[i];
    switch (op[i]) {
      case 0: s += v; break;
      case 1: s *= __expf(v); o[9] = s; break;
      case 2: s = __logf(v + s); o[i] = v; break;
      case 3: s = rsqrtf(v) - s; break;
      case 4: s = __sinf(v) + s; o[i + n] = s; break;
      case 5: s = __cosf(v) * 0.3f; break;
      case 6: s = fmaxf(s, v) * v; break;
      IF_NEW(case 7: s = __tanf(v); break;, )
    }
  }
  o[threadIdx.x] = s;
}

__constant__ float BANK[4] = {1.f, 2.f, 3.f, 4.f};
LOOP(constants__bank, const float *a AND float *o, s += a[i] * BANK[IF_NEW(2, 1)];)
LOOP(same__bank, const float *a AND float *o, s += a[i] * BANK[i & 3];)

__global__ void loops__split(const float *a, float *o, float *p, int n) {
#pragma unroll 1
  for (int i = 0; i < n; i++) { o[i] = a[i] * 2.f; IF_NEW(} _Pragma("unroll 1") for (int i = 0; i < n; i++) {, ) p[i] = a[i] + 2.f; }
}
__global__ void loops__gone(const float *a, float *o, int n) {
  IF_NEW(if (n), _Pragma("unroll 1") for (int i = 0; i < n; i++)) o[threadIdx.x] += a[threadIdx.x] * o[n];
}
__global__ void unrolled__whole(const float *a, float *o) {
  float s = 0.f;
#ifdef NEW
#pragma unroll
#else
#pragma unroll 1
#endif
  for (int i = 0; i < 12; i++) s = s * o[threadIdx.x] + a[i];
  o[threadIdx.x] = s;
}
__global__ void memory_width__copies(const float4 *a, float *o, int n) {
  __shared__ float4 t[64];
  unsigned at = __cvta_generic_to_shared(t + threadIdx.x);
#pragma unroll 1
  for (int i = 0; i < n; i++) {
    asm volatile("cp.async." IF_NEW("cg", "ca") ".shared.global [%0], [%1], " IF_NEW("16", "8") ";"
      :: "r"(at), "l"(a + i * 64 + threadIdx.x));
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    o[i] = t[threadIdx.x ^ 1].x;
  }
}
__global__ void barriers_and_waits__moved(float *o, int n) {
  __shared__ volatile float t[64];
#pragma unroll 1
  for (int i = 0; i < n; i++) {
    t[threadIdx.x] = o[i];
    IF_NEW(float v = t[threadIdx.x ^ 33]; __syncthreads();, __syncthreads(); float v = t[threadIdx.x ^ 33];)
    o[threadIdx.x] = v;
  }
}
#if __CUDA_ARCH__ < 1000
LOOP(rescheduled__padding, const float *a AND float *o, s += a[i]; o[i] = s; IF_NEW(, __syncwarp();))
#endif
__global__ void reordered__stores(const float *__restrict__ a, float *__restrict__ o, float *__restrict__ p) {
  float x = a[threadIdx.x], y = a[threadIdx.x + 64];
  IF_NEW(p[threadIdx.x] = y * 2.f; o[threadIdx.x] = x * 2.f;, o[threadIdx.x] = x * 2.f; p[threadIdx.x] = y * 2.f;)
}
__global__ void resources__shared(float *o) {
  __shared__ float t[IF_NEW(128, 64)];
  t[threadIdx.x & 63] = o[threadIdx.x]; __syncthreads();
  o[threadIdx.x] = t[threadIdx.x & 63 ^ 1];
}
#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(IF_NEW(4, 2), 1, 1) resources__cluster(float *x) { x[threadIdx.x] -= 2.f; }
#endif

__global__ void __launch_bounds__(IF_NEW(512, 256)) resources__bounds(float *x) { x[threadIdx.x] -= 1.f; }

__global__ void unrolled__sum(const float *a, float *o, int n) {
  float s = 0.f;
#pragma unroll STEPS
  for (int i = threadIdx.x; i < n; i += 64) s += a[i];
  o[threadIdx.x] = s;
}
__global__ void unrolled__product(const float *a, const float *b, float *o, int n) {
  float s = 0.f;
#pragma unroll MORE_STEPS
  for (int i = threadIdx.x; i < n; i += 64) s = s * a[i] + b[i];
  o[threadIdx.x] = s;
}

__global__ void barriers_and_waits__less(float *x, int n) {
  __shared__ float t[64];
#pragma unroll 1
  for (int i = 0; i < n; i++) {
    t[threadIdx.x] = x[i + threadIdx.x]; __syncthreads();
    x[i * 64 + threadIdx.x] = t[63 - threadIdx.x]; IF_NEW(, __syncthreads();)
  }
}
__global__ void barriers_and_waits__fence(float *x, int n) {
#pragma unroll 1
  for (int i = 0; i < n; i++) { x[i] = i; IF_NEW(__threadfence();, ) x[i + n] = i; }
}
__global__ void barriers_and_waits__copies(const float *a, float *o, int n) {
  __shared__ float t[64];
  unsigned at = __cvta_generic_to_shared(t + threadIdx.x);
#pragma unroll 1
  for (int i = 0; i < n; i++) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(a + i * 64 + threadIdx.x));
    asm volatile("cp.async.commit_group;");
    IF_NEW(asm volatile("cp.async.wait_group 0;" ::: "memory");, )
    o[i] = i;
  }
}

__global__ void MMA_shape__type(const unsigned *a, float *o, int n) {
  float c[4] = {};
  for (int k = 0; k < n; k++) {
    unsigned x = a[k], y = a[k + 1];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." IF_NEW("bf16.bf16", "f16.f16") ".f32 {%0,%1,%2,%3}, "
      "{%4,%5}, {%4}, {%0,%1,%2,%3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(x), "r"(y));
  }
  for (int i = 0; i < 4; i++) o[4 * threadIdx.x + i] = c[i];
}
__global__ void MMA_shape__depth(const unsigned *a, float *o, int n) {
  float c[4] = {};
#pragma unroll 1
  for (int k = 0; k < n; k++) {
    unsigned x = a[k], y = a[k + 1];
    asm volatile(IF_NEW(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%4,%5}, {%4,%5}, {%0,%1,%2,%3};",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%4}, {%0,%1,%2,%3};")
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(x), "r"(y));
  }
  for (int i = 0; i < 4; i++) o[4 * threadIdx.x + i] = c[i];
}

#define SPILLING(name, before, work)                                                                          \
  __global__ void __launch_bounds__(1024, IF_NEW(2, 1)) name(const float *a, float *o, int n) {               \
    float x[56];                                                                                              \
    for (int i = 0; i < 56; i++) x[i] = a[i * n + threadIdx.x];                                               \
    before {                                                                                                  \
      float t = a[n];                                                                                         \
      _Pragma("unroll") for (int i = 0; i < 56; i++) x[i] = x[i] * t + work;                                  \
    }                                                                                                         \
    for (int i = 0; i < 56; i++) o[i * n + threadIdx.x] = x[i];                                               \
  }
SPILLING(spills__depth_0, , x[(i * 7) % 56])
SPILLING(spills__depth_1, for (int k = 0; k < n; k++), x[(i * 7) % 56] * k)
SPILLING(spills__depth_2, for (int m = 0; m < n; m++) for (int k = 0; k < m; k++), x[(i * 7) % 56] * k)

__global__ void __launch_bounds__(1024, IF_NEW(2, 1)) spills__shared(const float *a, float *o, int n) {
  asm volatile(".pragma \"enable_smem_spilling\";");
  float x[56];
  for (int i = 0; i < 56; i++) x[i] = a[i * n + threadIdx.x];
  for (int k = 0; k < n; k++) {
    float t = a[n + k];
#pragma unroll
    for (int i = 0; i < 56; i++) x[i] = x[i] * t + x[(i * 7) % 56];
  }
  for (int i = 0; i < 56; i++) o[i * n + threadIdx.x] = x[i];
}

IF_NEW(__global__ void new__kernel(int *x) { x[0] = 1; }, __global__ void gone__kernel(int *x) { x[0] = x[2] / 7; })
}

__device__ __noinline__ float spilling_callee(const float *x, int n, float t) {
  float y[48];
  for (int i = 0; i < 48; i++) y[i] = x[i * n];
  for (int k = 0; k < n; k++) {
    float u = x[k];
#pragma unroll
    for (int i = 0; i < 48; i++) y[i] = y[i] * u + y[(i * 5) % 48];
  }
  for (int i = 0; i < 48; i++) t = t * y[i] + 1.f;
  return t;
}
extern "C" __global__ void __launch_bounds__(1024, IF_NEW(2, 1)) spills__callee(const float *a, float *o, int n) {
  o[threadIdx.x] = spilling_callee(a + threadIdx.x, n, o[threadIdx.x]);
}
// The numbers of the table are in a section that no kernel has for itself: it is listed like a function.
extern "C" __global__ void same__table(float *o) { o[threadIdx.x] = TABLE[threadIdx.x & 7]; }

#ifdef __CUDACC_EXTENDED_LAMBDA__
template <typename F> __global__ void renamed__lambda(float *o, F f) { o[threadIdx.x] = f(o[threadIdx.x]); }
#define DOUBLED renamed__lambda<<<1, 32>>>(o, [] __device__(float x) { return x * 2.f; });
void launch_lambdas(float *o) {
#ifdef NEW
  DOUBLED
#endif
  renamed__lambda<<<1, 32>>>(o, [] __device__(float x) { return x + 1.f; });
#ifndef NEW
  DOUBLED
#endif
}
#endif
