// v1: the plain scalar baseline. A block computes one query row; a thread computes whole dot products.
//
// What changed: nothing, the lineage starts here.
// Why this form: it is softmax(Q K^T) V as written down, and easy to see to be right. The keys are walked
//   twice: for the row's maximum, then, with it known, for the exponentials, their sum and P V.
// Source: the textbook's safe softmax. K and V come straight from global memory; reuse is left to the caches.
// Limits: every row reads all of K twice; a warp reads K at addresses a row (128 or 256 bytes) apart, 2 bytes
//   at a time. One pass is v2's idea, wide loads are flashcore_vec's.
// Known failures: none. On the owner's L4 it is faster than v2b, for all of v2b's ideas.
#include "common.cuh"

constexpr int THREADS = 64;  // a thread a key of the tile, and a column of O (d=128: 2)
constexpr int WARPS = THREADS / 32;

template <int D>
constexpr size_t SMEM = (D + THREADS + 2 * WARPS) * sizeof(float);

template <int D>
__global__ void __launch_bounds__(THREADS) v1(const __half* __restrict__ Q,  // [batch * heads, len_q, D]
                                              const __half* __restrict__ K,  // [batch * heads, len_kv, D]
                                              const __half* __restrict__ V,  // [batch * heads, len_kv, D]
                                              __half* __restrict__ O,        // [batch * heads, len_q, D]
                                              int len_q, int len_kv, float scale, int causal) {
  DYN_SMEM(smem);
  float* Q_smem = reinterpret_cast<float*>(smem);  // [D]
  float* P_smem = Q_smem + D;                      // [THREADS]
  float* m_smem = P_smem + THREADS;                // [WARPS]
  float* l_smem = m_smem + WARPS;                  // [WARPS]
  const int thread = threadIdx.x, warp_id = thread / 32, lane_id = thread % 32;
  const int row = blockIdx.x;
  const int visible = visible_keys(row, len_q, len_kv, causal);
  const int kv_end = keys_to_visit(row, len_q, len_kv, causal);
  float* stage = stage_row(O, row, len_q, len_kv);  // [len_kv], ONLY builds
  Q += (head_of_block() * len_q + row) * D;
  K += head_of_block() * len_kv * D;
  V += head_of_block() * len_kv * D;
  O += (head_of_block() * len_q + row) * D;

  // --- load Q
  for (int c = thread; c < D; c += THREADS) Q_smem[c] = __half2float(Q[c]);
  __syncthreads();  // every thread reads the whole row of Q

  auto score = [&](int key) {
    float dot = 0.f;
    if (key >= visible) return -INFINITY;  // and no read past the last key
#pragma unroll 8                           // loads in flight; unrolled whole, it spills registers on sm_80
    for (int c = 0; c < D; ++c) dot += Q_smem[c] * __half2float(K[(size_t)key * D + c]);
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
  float l = 0.f;                   // this thread's keys' share of the sum
  float O_rmem[D / THREADS] = {};  // columns thread + THREADS * e
  for (int k0 = 0; k0 < kv_end; k0 += THREADS) {
    // --- scores S = Q K^T
    // --- mask (both in score)
    const float s = score(k0 + thread);

    // --- online softmax
    const float p = __expf(s - m);  // not online yet: m is the row's final maximum
    stage_store<ONLY_SOFTMAX>(stage, k0 + thread, len_kv, p);
    P_smem[thread] = p;
    l += p;
    __syncthreads();  // the probabilities of all the tile's keys

    // --- O += P V
    for (int n = 0; n < min(THREADS, kv_end - k0); ++n)
      for (int e = 0; e < D / THREADS; ++e)
        O_rmem[e] += P_smem[n] * __half2float(V[(size_t)(k0 + n) * D + e * THREADS + thread]);
    __syncthreads();  // P is read before the next tile overwrites it
  }

  // --- normalise and store O
  l = warp_sum(l);
  if (lane_id == 0) l_smem[warp_id] = l;
  __syncthreads();  // the other warps' sums
  l = 0.f;
  for (int w = 0; w < WARPS; ++w) l += l_smem[w];
  const float inv_l = visible > 0 ? 1.f / l : 0.f;  // a row that sees no key gives 0
  stage_rescale(stage, thread, THREADS, kv_end, inv_l);
  if (STAGE_BUILD) return;
  for (int e = 0; e < D / THREADS; ++e) O[e * THREADS + thread] = __float2half(O_rmem[e] * inv_l);
}

template <int D>
int launch_v1(const void* q, const void* k, const void* v, void* o, int batch, int heads, int len_q,
              int len_kv, float scale, int causal, void* stream) {
  return LAUNCH(v1<D>, dim3(len_q, heads, batch), dim3(THREADS), SMEM<D>, stream, (const __half*)q,
                (const __half*)k, (const __half*)v, (__half*)o, len_q, len_kv, scale, causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64) return launch_v1<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128) return launch_v1<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
