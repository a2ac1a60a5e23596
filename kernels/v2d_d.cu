// v2d_d: every fragment of K and V is used twice, and the next product runs beside this softmax.
//
// What changed against v2d_c:
//   A warp owns STRIPS strips of 16 rows: two at d=64, so that a fragment of K or V, once loaded, is the
//     operand of two mma; one at d=128, where two would take more registers than a thread has.
//   S of the next tile is computed before the softmax of this one where a warp has two strips, and after P V
//     where it has one, and registers for one S. K is a tile ahead of V, and each has two stages: as many
//     loads in flight as v2d_b, and a tile's arithmetic for each of them to arrive in.
//   The address of a fragment is a lane's own offset, XORed with a constant, plus a constant.
// Why it should help: v2d_c is bound by shared memory (a warp's ldmatrix take 512 clocks for 64 rows and
//   keys, its mma 406), and here a row costs half as many. The next product needs nothing of this softmax,
//   so that tensor cores and exponentials work at once; addresses were a quarter of the loop's instructions.
// Source: Dao, "FlashAttention-2" (arXiv 2307.08691), section 3.3; Shah et al., "FlashAttention-3" (arXiv
//   2407.08608), section 3.2, for the order of the products, there with wgmma.
// Limits: as v2d_c; with 8 warps an SM it hides latency by its own order of instructions and not by other
//   warps. Blocks of 128 rows leave most of a GPU idle where a problem has few rows: below FEW_BLOCKS of
//   them it runs in the shape of v2d_c, 64 rows a block.
// Known failures: none.
#include <type_traits>

#include "ptx.cuh"

#ifndef KEYS
#define KEYS 64  // a tile at d=64, and half of them at d=128
#endif
#ifndef FEW_BLOCKS
#define FEW_BLOCKS 128  // fewer than these leave SMs of a large GPU without work
#endif

constexpr int WARPS = 4;
constexpr int THREADS = WARPS * 32;
constexpr int STAGES = 2;  // of K, and of V: one is read while the other is loaded
template <int STRIPS>
constexpr int BM = WARPS * 16 * STRIPS;  // rows a block
template <int D>
constexpr int BN = D == 64 ? KEYS : KEYS / 2;  // keys a tile
template <int D, int STRIPS>
constexpr size_t SMEM = (BM<STRIPS> + 2 * STAGES * BN<D>)*D * sizeof(__half);
// Where a row's maximum starts: below any score, and still finite when it is scaled.
constexpr float UNSCALED_M_START = M_START / 65536;  // by a scale * log2(e) of up to 65536
constexpr float LOG2E = 1.4426950408889634f;  // exp(x) = 2^(x log2 e), and 2^x is what the hardware has

// Where 16-byte chunk `chunk` of row `row` lies in a tile [rows][D], in halves: v2d_b's swizzle. The XOR
// changes the low bits of the chunk alone, so that of another chunk is this one's place XORed with their
// difference, and that of a row 8 further is this one's place plus 8 * D.
template <int D>
__device__ __forceinline__ int chunk_at(int row, int chunk) {
  return row * D + (chunk ^ (row & 7)) * 8;
}

// Starts the copy of src [rows][D] to the tile dst [ROWS][D] in shared memory; rows past the end become 0.
template <int ROWS, int D>
__device__ __forceinline__ void copy_tile_async(__half* dst, const __half* src, int rows) {
  constexpr int CHUNKS = D / 8;           // in a row
  constexpr int STEP = THREADS / CHUNKS;  // rows; a multiple of 8, so that a thread's chunk is swizzled alike
  const int first = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
  __half* const to = dst + chunk_at<D>(first, chunk);
  const __half* const from = src + first * D + chunk * 8;
#pragma unroll
  for (int row = 0; row < ROWS; row += STEP) cp_async_16(to + row * D, from + row * D, first + row < rows);
}

template <int D, int STRIPS>
__device__ __forceinline__ void attend(const __half* __restrict__ Q,  // [batch * heads, len_q, D]
                                       const __half* __restrict__ K,  // [batch * heads, len_kv, D]
                                       const __half* __restrict__ V,  // [batch * heads, len_kv, D]
                                       __half* __restrict__ O,        // [batch * heads, len_q, D]
                                       int len_q, int len_kv, float scale, int causal) {
  constexpr int BM = ::BM<STRIPS>, BN = ::BN<D>;
  constexpr bool AHEAD = STRIPS > 1;  // whether S of the next tile comes before this softmax, or after P V
  DYN_SMEM(smem);
  __half* Q_smem = reinterpret_cast<__half*>(smem);  // [BM][D], and O on the way out
  __half* K_smem = Q_smem + BM * D;                  // [STAGES][BN][D]
  __half* V_smem = K_smem + STAGES * BN * D;         // [STAGES][BN][D]
  const int warp_id = threadIdx.x / 32, lane_id = threadIdx.x % 32;
  const int q0 = blockIdx.x * BM;           // the block's first row
  const int strip = warp_id * 16 * STRIPS;  // the warp's first row in the tile
  const int row = strip + lane_id / 4;      // a lane holds parts of this row and of the one 8 below, a strip
  const int col = lane_id % 4 * 2;          // of every 8 columns it holds this one and the next
  void* const stage_out = O;                // ONLY builds
  const float scale_log2 = scale * LOG2E;
  Q += head_of_block() * len_q * D;
  K += head_of_block() * len_kv * D;
  V += head_of_block() * len_kv * D;
  O += head_of_block() * len_q * D;

  // --- load Q
  copy_tile_async<BM, D>(Q_smem, Q + (size_t)q0 * D, len_q - q0);

  // --- tile loop: load K,V
  const int kv_end = keys_to_visit(min(q0 + BM, len_q) - 1, len_q, len_kv, causal);
  const int tiles = (kv_end + BN - 1) / BN;
  auto load_tile = [&](__half* smem, const __half* X, int t) {
    if (t < tiles)
      copy_tile_async<BN, D>(smem + t % STAGES * BN * D, X + (size_t)t * BN * D, len_kv - t * BN);
    __pipeline_commit();  // past the last tile too: the waits count groups
  };
  load_tile(K_smem, K, 0);  // with Q
  load_tile(V_smem, V, 0);
  load_tile(K_smem, K, 1);

  __pipeline_wait_prior(2);            // this thread's part of Q and of the first K has landed
  __syncthreads();                     // so has everyone's
  uint32_t Q_rmem[STRIPS][D / 16][4];  // [16][D], the warp's strips, for all tiles
#pragma unroll
  for (int s = 0; s < STRIPS; ++s)
#pragma unroll
    for (int k = 0; k < D / 16; ++k)
      ldmatrix_x4(Q_rmem[s][k], Q_smem + chunk_at<D>(strip + s * 16 + lane_id % 16, k * 2 + lane_id / 16));

  float O_rmem[STRIPS][D / 8][4] = {};  // [16][D] in blocks of 8 columns: row: 0, 1; row + 8: 2, 3
  float m_rmem[STRIPS][2];
  float l_rmem[STRIPS][2] = {};  // of this lane's columns; the row's four lanes are added at the end
  float* stage_rows[STRIPS][2];  // [len_kv] each
  for (int s = 0; s < STRIPS; ++s)
    for (int h = 0; h < 2; ++h) {
      const int i = q0 + row + s * 16 + h * 8;
      m_rmem[s][h] = UNSCALED_M_START;
      stage_rows[s][h] = stage_row(stage_out, i, len_q, len_kv);
    }
  const int seen_by_all = visible_keys(q0 + strip, len_q, len_kv, causal);  // by every row of the warp

  // --- scores S = Q K^T
  float S_rmem[STRIPS][BN / 8][4], S_next[STRIPS][BN / 8][4];  // [16][BN], laid out as O_rmem
  const int K_lane = chunk_at<D>(lane_id / 16 * 8 + lane_id % 8, lane_id / 8 % 2);
  const int V_lane = chunk_at<D>(lane_id % 16, lane_id / 16);
  auto scores = [&](float (&S)[STRIPS][BN / 8][4], int t) {
    const __half* K_tile = K_smem + t % STAGES * BN * D;  // [BN][D]
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
      for (int n = 0; n < BN / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) S[s][n][i] = 0.f;
#pragma unroll
    for (int k = 0; k < D / 16; ++k)
#pragma unroll
      for (int n = 0; n < BN / 8; n += 2) {
        uint32_t K_rmem[4];  // 16 keys x 16 columns: B fragments of two mma
        ldmatrix_x4(K_rmem, K_tile + (K_lane ^ k * 16) + n * 8 * D);
#pragma unroll
        for (int s = 0; s < STRIPS; ++s) {
          mma_m16n8k16(S[s][n], Q_rmem[s][k], K_rmem[0], K_rmem[1]);
          mma_m16n8k16(S[s][n + 1], Q_rmem[s][k], K_rmem[2], K_rmem[3]);
        }
      }
  };
  if (tiles > 0) scores(S_rmem, 0);

  // One tile, whose scores are in S_rmem; those of the next go to S_next, or to S_rmem where nothing is
  //   ahead.
  auto tile = [&](float (&S_rmem)[STRIPS][BN / 8][4], float (&S_next)[STRIPS][BN / 8][4], int t,
                  auto last) __attribute__((always_inline)) {
    __pipeline_wait_prior(0);  // this thread's part of V of tile t, and of K of the next, has landed
    __syncthreads();           // so has everyone's; and everyone is done with V of tile t - 1 and K of tile t
    load_tile(V_smem, V, t + 1);
    load_tile(K_smem, K, t + 2);
    const __half* V_tile = V_smem + t % STAGES * BN * D;  // [BN][D]

    // --- mask
    if (ONLY != ONLY_ALL || (t + 1) * BN > seen_by_all)  // only at the diagonal and at the end
#pragma unroll
      for (int s = 0; s < STRIPS; ++s)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int visible = visible_keys(q0 + row + s * 16 + h * 8, len_q, len_kv, causal);
#pragma unroll
          for (int n = 0; n < BN / 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              const int key = t * BN + n * 8 + col + i;
              float& score = S_rmem[s][n][h * 2 + i];
              score = mask_score(score, key, visible);
              stage_store<ONLY_QK>(stage_rows[s][h], key, len_kv, score * scale);
            }
        }

    if constexpr (AHEAD && !decltype(last)::value)
      scores(S_next, t + 1);  // needs nothing of the softmax below

    // --- online softmax
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float m_new = m_rmem[s][h];  // of the scores before they are scaled
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
          m_new = fmaxf(m_new, fmaxf(S_rmem[s][n][h * 2], S_rmem[s][n][h * 2 + 1]));
        m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, 1));  // a row's four lanes are neighbours
        m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, 2));
        const float base = m_new * scale_log2;
        // The difference first: 0 where the maximum stays (see v2d.cu).
        const float correction = exp2_approx((m_rmem[s][h] - m_new) * scale_log2);
        m_rmem[s][h] = m_new;
        l_rmem[s][h] *= correction;
        for (int i = 0; i < 2; ++i)
          stage_rescale(stage_rows[s][h], col + i, 8, min(t * BN, len_kv), correction);
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float p = exp2_approx(S_rmem[s][n][h * 2 + i] * scale_log2 - base);
            stage_store<ONLY_SOFTMAX>(stage_rows[s][h], t * BN + n * 8 + col + i, len_kv, p);
            S_rmem[s][n][h * 2 + i] = p;  // from here on it is P
            l_rmem[s][h] += p;
          }
#pragma unroll
        for (int d = 0; d < D / 8; ++d) {
          O_rmem[s][d][h * 2] *= correction;
          O_rmem[s][d][h * 2 + 1] *= correction;
        }
      }

    // --- O += P V
#pragma unroll
    for (int k = 0; k < BN / 16; ++k) {
      uint32_t P_rmem[STRIPS][4];  // two blocks of 8 keys are one A fragment
#pragma unroll
      for (int s = 0; s < STRIPS; ++s)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float (&P)[4] = S_rmem[s][2 * k + i / 2];
          P_rmem[s][i] = pack_half2(P[i % 2 * 2], P[i % 2 * 2 + 1]);
        }
#pragma unroll
      for (int d = 0; d < D / 8; d += 2) {
        uint32_t V_rmem[4];  // 16 keys x 16 columns, transposed: B fragments of two mma
        ldmatrix_x4_trans(V_rmem, V_tile + (V_lane ^ d * 8) + k * 16 * D);
#pragma unroll
        for (int s = 0; s < STRIPS; ++s) {
          mma_m16n8k16(O_rmem[s][d], P_rmem[s], V_rmem[0], V_rmem[1]);
          mma_m16n8k16(O_rmem[s][d + 1], P_rmem[s], V_rmem[2], V_rmem[3]);
        }
      }
    }
    if (!AHEAD && t + 1 < tiles) scores(S_rmem, t + 1);
  };
  const std::false_type more;
  const std::true_type last;
  int t = 0;
  if constexpr (!AHEAD) {
    for (; t < tiles; ++t) tile(S_rmem, S_rmem, t, more);
  } else {
    for (; t + 2 < tiles; t += 2) {  // by two: the arrays change places, and no register is copied
      tile(S_rmem, S_next, t, more);
      tile(S_next, S_rmem, t + 1, more);
    }
    if (t + 1 < tiles) {
      tile(S_rmem, S_next, t, more);
      tile(S_next, S_rmem, t + 1, last);
    } else if (t < tiles) {
      tile(S_rmem, S_next, t, last);
    }
  }

  // --- normalise and store O
  __syncwarp();  // O takes the place of the strips of Q: with no tile, no barrier lies between
#pragma unroll
  for (int s = 0; s < STRIPS; ++s)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float l = l_rmem[s][h];
      l += __shfl_xor_sync(FULL_WARP, l, 1);
      l += __shfl_xor_sync(FULL_WARP, l, 2);
      const float inv_l = l > 0.f ? __fdividef(1.f, l) : 0.f;  // a row that sees no key gives 0
      for (int i = 0; i < 2; ++i) stage_rescale(stage_rows[s][h], col + i, 8, len_kv, inv_l);
#pragma unroll
      for (int d = 0; d < D / 8; ++d)
        *reinterpret_cast<uint32_t*>(Q_smem + chunk_at<D>(row + s * 16 + h * 8, d) + col) =
            pack_half2(O_rmem[s][d][h * 2] * inv_l, O_rmem[s][d][h * 2 + 1] * inv_l);
    }
  __syncwarp();  // the rows are whole before other lanes store them, 16 bytes a lane
#pragma unroll
  for (int i = lane_id; i < 16 * STRIPS * D / 8; i += 32) {
    const int out_row = strip + i / (D / 8), chunk = i % (D / 8);
    if (!STAGE_BUILD && q0 + out_row < len_q)
      *reinterpret_cast<uint4*>(O + (size_t)(q0 + out_row) * D + chunk * 8) =
          *reinterpret_cast<const uint4*>(Q_smem + chunk_at<D>(out_row, chunk));
  }
}

// Two strips a warp where the registers allow it: 2 blocks an SM leave a thread 255, 3 leave it 168.
template <int D>
constexpr int STRIPS = D == 64 ? 2 : 1;
template <int D>
__global__ void __launch_bounds__(THREADS, D == 64 ? 2 : 3)
    v2d_d(const __half* __restrict__ Q, const __half* __restrict__ K, const __half* __restrict__ V,
          __half* __restrict__ O, int len_q, int len_kv, float scale, int causal) {
  attend<D, STRIPS<D>>(Q, K, V, O, len_q, len_kv, scale, causal);
}
// The shape for few blocks; at d=128 there is one shape alone.
template <int D>
__global__ void __launch_bounds__(THREADS, 4)
    v2d_d_few(const __half* __restrict__ Q, const __half* __restrict__ K, const __half* __restrict__ V,
              __half* __restrict__ O, int len_q, int len_kv, float scale, int causal) {
  attend<D, 1>(Q, K, V, O, len_q, len_kv, scale, causal);
}

template <int D>
int launch_v2d_d(const void* q, const void* k, const void* v, void* o, int batch, int heads, int len_q,
                 int len_kv, float scale, int causal, void* stream) {
  constexpr int ROWS = BM<STRIPS<D>>;
  const int tiles = (len_q + ROWS - 1) / ROWS;
  if constexpr (STRIPS<D> > 1)
    if ((long long)tiles * heads * batch < FEW_BLOCKS)
      return LAUNCH(v2d_d_few<D>, dim3((len_q + BM<1> - 1) / BM<1>, heads, batch), dim3(THREADS),
                    (SMEM<D, 1>), stream, (const __half*)q, (const __half*)k, (const __half*)v, (__half*)o,
                    len_q, len_kv, scale, causal);
  return LAUNCH(v2d_d<D>, dim3(tiles, heads, batch), dim3(THREADS), (SMEM<D, STRIPS<D>>), stream,
                (const __half*)q, (const __half*)k, (const __half*)v, (__half*)o, len_q, len_kv, scale,
                causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64) return launch_v2d_d<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128)
    return launch_v2d_d<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
