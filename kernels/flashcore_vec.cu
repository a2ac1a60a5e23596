// flashcore_vec: v1 with 16-byte loads; the arithmetic stays scalar.
//
// What changed against v1: Q, K and V come 8 halves at a time, and O leaves so. For V that turns the work
//   round: a thread holds 8 neighbouring columns of O for every 8th key (d=128: every 4th), and the
//   groups' shares of O are added in shared memory at the end.
// Why it should help: v1 issues a load a half. K takes an eighth of the instructions here, and a thread uses
//   16 of a sector's 32 bytes at once and not 2; a warp reads 4 rows of V (d=128: 2) with one instruction.
// Source: Luitjens, "CUDA Pro Tip: Increase Performance with Vectorized Memory Access" (NVIDIA developer
//   blog).
// Limits: still a block a query row, so every row reads K twice and V once, and no tensor cores: those are
//   flashcore_wmma's ideas. A 16-byte load wants a multiple of 16 as its address: head_dim is one of 8.
// Known failures: none. The owner's build took 546 us on an L4, and v1 1378 us.
#include "common.cuh"

constexpr int THREADS = 64;  // as in v1
constexpr int WARPS = THREADS / 32;
constexpr int VEC = 8;  // halves in 16 bytes, the widest load there is

template <int D>
constexpr size_t SMEM = (D + THREADS + 2 * WARPS + VEC * THREADS) * sizeof(float);

__device__ __forceinline__ void load_vec(float (&x)[VEC], const __half* p) {
  const uint4 bits = *reinterpret_cast<const uint4*>(p);
  __half2 pairs[VEC / 2];
  memcpy(pairs, &bits, sizeof pairs);
#pragma unroll
  for (int i = 0; i < VEC / 2; ++i) {
    x[2 * i] = __half22float2(pairs[i]).x;
    x[2 * i + 1] = __half22float2(pairs[i]).y;
  }
}
__device__ __forceinline__ void store_vec(__half* p, const float (&x)[VEC]) {
  __half2 pairs[VEC / 2];
#pragma unroll
  for (int i = 0; i < VEC / 2; ++i) pairs[i] = __floats2half2_rn(x[2 * i], x[2 * i + 1]);
  uint4 bits;
  memcpy(&bits, pairs, sizeof bits);
  *reinterpret_cast<uint4*>(p) = bits;
}

template <int D>
__global__ void __launch_bounds__(THREADS)
    flashcore_vec(const __half* __restrict__ Q,  // [batch * heads, len_q, D]
                  const __half* __restrict__ K,  // [batch * heads, len_kv, D]
                  const __half* __restrict__ V,  // [batch * heads, len_kv, D]
                  __half* __restrict__ O,        // [batch * heads, len_q, D]
                  int len_q, int len_kv, float scale, int causal) {
  constexpr int CHUNKS = D / VEC;           // in a row
  constexpr int GROUPS = THREADS / CHUNKS;  // of threads that hold a whole row of O between them
  DYN_SMEM(smem);
  float* Q_smem = reinterpret_cast<float*>(smem);  // [D]
  float* P_smem = Q_smem + D;                      // [THREADS]
  float* m_smem = P_smem + THREADS;                // [WARPS]
  float* l_smem = m_smem + WARPS;                  // [WARPS]
  float* O_smem = l_smem + WARPS;  // [VEC][THREADS]: a thread's 8 columns lie apart, in one bank
  const int thread = threadIdx.x, warp_id = thread / 32, lane_id = thread % 32;
  const int group = thread / CHUNKS, col = thread % CHUNKS * VEC;  // this thread's keys and columns of O
  const int row = blockIdx.x;
  const int visible = visible_keys(row, len_q, len_kv, causal);
  const int kv_end = keys_to_visit(row, len_q, len_kv, causal);
  float* stage = stage_row(O, row, len_q, len_kv);  // [len_kv], ONLY builds
  Q += (head_of_block() * len_q + row) * D;
  K += head_of_block() * len_kv * D;
  V += head_of_block() * len_kv * D;
  O += (head_of_block() * len_q + row) * D;

  // --- load Q
  if (thread < CHUNKS) {
    float q[VEC];
    load_vec(q, Q + col);
    for (int i = 0; i < VEC; ++i) Q_smem[col + i] = q[i];
  }
  __syncthreads();  // every thread reads the whole row of Q

  auto score = [&](int key) {
    float dot = 0.f;
#pragma unroll 4  // loads in flight; unrolled whole, it spills registers on sm_90a
    for (int c = 0; key < visible && c < D; c += VEC) {
      float k[VEC];
      load_vec(k, K + (size_t)key * D + c);
#pragma unroll
      for (int i = 0; i < VEC; ++i) dot += Q_smem[c + i] * k[i];
    }
    return mask_score(dot * scale, key, visible);
  };

  // --- first pass: the row's maximum
  float m = M_START;
  for (int key = thread; key < kv_end; key += THREADS) {
    const float s = score(key);
    stage_store<ONLY_QK>(stage, key, len_kv, s);
    m = fmaxf(m, s);
  }
  m = warp_max(m);
  if (lane_id == 0) m_smem[warp_id] = m;
  __syncthreads();  // the other warps' maxima
  for (int w = 0; w < WARPS; ++w) m = fmaxf(m, m_smem[w]);

  // --- tile loop: load K,V
  float l = 0.f,
        O_rmem[VEC] = {};  // this thread's keys' share of the sum, and of columns col .. col + 7 of O
  for (int k0 = 0; k0 < kv_end; k0 += THREADS) {
    // --- scores S = Q K^T
    // --- mask
    const float s = score(k0 + thread);

    // --- online softmax
    const float p = __expf(s - m);  // not online yet: m is the row's final maximum
    stage_store<ONLY_SOFTMAX>(stage, k0 + thread, len_kv, p);
    P_smem[thread] = p;
    l += p;
    __syncthreads();  // the probabilities of all the tile's keys

    // --- O += P V
    for (int n = group; n < min(THREADS, kv_end - k0); n += GROUPS) {
      float v[VEC];
      load_vec(v, V + (size_t)(k0 + n) * D + col);
#pragma unroll
      for (int i = 0; i < VEC; ++i) O_rmem[i] += P_smem[n] * v[i];
    }
    __syncthreads();  // P is read before the next tile overwrites it
  }

  // --- normalise and store O
  l = warp_sum(l);
  if (lane_id == 0) l_smem[warp_id] = l;
  for (int i = 0; i < VEC; ++i) O_smem[i * THREADS + thread] = O_rmem[i];
  __syncthreads();  // the other warps' sums, and the other groups' shares of O
  l = 0.f;
  for (int w = 0; w < WARPS; ++w) l += l_smem[w];
  const float inv_l = visible > 0 ? 1.f / l : 0.f;  // a row that sees no key gives 0
  stage_rescale(stage, thread, THREADS, kv_end, inv_l);
  if (!STAGE_BUILD && thread < CHUNKS) {
    float o[VEC] = {};
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
      for (int i = 0; i < VEC; ++i) o[i] += O_smem[i * THREADS + g * CHUNKS + thread] * inv_l;
    store_vec(O + col, o);
  }
}

template <int D>
int launch_flashcore_vec(const void* q, const void* k, const void* v, void* o, int batch, int heads,
                         int len_q, int len_kv, float scale, int causal, void* stream) {
  return LAUNCH(flashcore_vec<D>, dim3(len_q, heads, batch), dim3(THREADS), SMEM<D>, stream, (const __half*)q,
                (const __half*)k, (const __half*)v, (__half*)o, len_q, len_kv, scale, causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64)
    return launch_flashcore_vec<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128)
    return launch_flashcore_vec<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
