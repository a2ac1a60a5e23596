// v2c_v3: the block computes a tile's scores together; they meet their rows' owners in shared memory.
//
// What changed against v2c_v2: Q K^T is scalar again, to prove what surrounds it before WMMA comes back
//   (v2c_v4). Against v2b: a lane computes whole dot products, 4 rows x 2 keys at a time; a warp takes 16x16
//   patches of the tile of scores.
// Why it should help: no shuffles end a dot product, and a value of Q or K once loaded serves 2 or 4 of them.
// Source: the owner's notes (the order of steps); any textbook's register-blocked GEMM (the patches).
// Limits: scalar arithmetic; two waits of the block a tile; P V reads the tile of V once for each row.
// Known failures, kept as builds: BUG_V2C_V3_SYNCWARP: __syncwarp where the block must meet; owners read
//   scores that other warps have yet to write (race). BUG_V2C_V3_REDUCE32: every lane adds up the whole row,
//   and these sums, all the same, are added once more over the warp: O comes out 32 times too small.
#include "common.cuh"

constexpr int WARPS = 8;
constexpr int THREADS = WARPS * 32;

template <int D>
struct Tile {
  static constexpr int BM = D == 64 ? 64 : 48;  // rows, as in v2b
  static constexpr int BN = D == 64 ? 64 : 32;  // keys
  // Row strides in shared memory. 16 bytes more turn each row's start by 4 banks, and still suit cp.async.
  static constexpr int LD = D + 8;     // Q, K, V, in halves
  static constexpr int S_LD = BN + 8;  // S, in floats: rows written together lie 8 banks apart
  static constexpr size_t SMEM = (BM + 4 * BN) * LD * sizeof(__half) + BM * (S_LD + D + 2) * sizeof(float);
};

template <int D>
__global__ void __launch_bounds__(THREADS) v2c_v3(const __half* __restrict__ Q,  // [batch * heads, len_q, D]
                                                  const __half* __restrict__ K,  // [batch * heads, len_kv, D]
                                                  const __half* __restrict__ V,  // [batch * heads, len_kv, D]
                                                  __half* __restrict__ O,        // [batch * heads, len_q, D]
                                                  int len_q, int len_kv, float scale, int causal) {
  constexpr int BM = Tile<D>::BM, BN = Tile<D>::BN, LD = Tile<D>::LD, S_LD = Tile<D>::S_LD;
  constexpr int ROWS_PER_WARP = BM / WARPS;
  constexpr int PAIRS = D / 64;  // P V: a lane holds the columns 2 * lane_id + 64 * e and the one after it
  DYN_SMEM(smem);
  __half* Q_smem = reinterpret_cast<__half*>(smem);                // [BM][LD]
  __half* K_smem = Q_smem + BM * LD;                               // [2][BN][LD]
  __half* V_smem = K_smem + 2 * BN * LD;                           // [2][BN][LD]
  float* S_smem = reinterpret_cast<float*>(V_smem + 2 * BN * LD);  // [BM][S_LD], scores, then probabilities
  float* O_smem = S_smem + BM * S_LD;                              // [BM][D]
  float* m_smem = O_smem + BM * D;                                 // [BM]
  float* l_smem = m_smem + BM;                                     // [BM]
  const int warp_id = threadIdx.x / 32, lane_id = threadIdx.x % 32;
  const int q0 = blockIdx.x * BM;                 // the block's first row
  const int first_row = warp_id * ROWS_PER_WARP;  // the warp's first row in the tile
  void* const stage_out = O;                      // ONLY builds
  Q += head_of_block() * len_q * D;
  K += head_of_block() * len_kv * D;
  V += head_of_block() * len_kv * D;
  O += head_of_block() * len_q * D;

  // --- load Q
  copy_rows_async<BM, D, LD, THREADS>(Q_smem, Q, q0, len_q);
  for (int i = threadIdx.x; i < BM * D; i += THREADS) O_smem[i] = 0.f;
  for (int i = threadIdx.x; i < BM; i += THREADS) {
    m_smem[i] = M_START;
    l_smem[i] = 0.f;
  }

  // --- tile loop: load K,V
  const int kv_end = keys_to_visit(min(q0 + BM, len_q) - 1, len_q, len_kv, causal);
  const int tiles = max(1, (kv_end + BN - 1) / BN);  // at least one: its barriers are also Q's and O's
  auto load_tile = [&](int t) {
    copy_rows_async<BN, D, LD, THREADS>(K_smem + t % 2 * BN * LD, K, t * BN, len_kv);
    copy_rows_async<BN, D, LD, THREADS>(V_smem + t % 2 * BN * LD, V, t * BN, len_kv);
    __pipeline_commit();
  };
  load_tile(0);
  for (int t = 0; t < tiles; ++t) {
    __pipeline_wait_prior(0);  // this thread's part of tile t (and of Q) has landed
    __syncthreads();           // so has everyone's; and everyone is done with tile t - 1: its stage and S
    if (t + 1 < tiles) load_tile(t + 1);
    const __half* K_tile = K_smem + t % 2 * BN * LD;  // [BN][LD]
    const __half* V_tile = V_smem + t % 2 * BN * LD;  // [BN][LD]

    // --- scores S = Q K^T
#pragma unroll 1  // a warp has 2 patches at most: no code for more
    for (int patch = warp_id; patch < BM / 16 * (BN / 16); patch += WARPS) {
      const int row0 = patch / (BN / 16) * 16, key0 = patch % (BN / 16) * 16;
      // This lane: rows lane_id / 8 + 4 * i, keys lane_id % 8 + 8 * j. 8 keys lie in 8 groups of banks.
      const __half* Q_lane = Q_smem + (row0 + lane_id / 8) * LD;
      const __half* K_lane = K_tile + (key0 + lane_id % 8) * LD;
      float S_rmem[4][2] = {};
#pragma unroll 4
      for (int c = 0; c < D; c += 2) {
        float2 k[2];
#pragma unroll
        for (int j = 0; j < 2; ++j)
          k[j] = __half22float2(*reinterpret_cast<const __half2*>(K_lane + 8 * j * LD + c));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float2 q = __half22float2(*reinterpret_cast<const __half2*>(Q_lane + 4 * i * LD + c));
#pragma unroll
          for (int j = 0; j < 2; ++j) S_rmem[i][j] += q.x * k[j].x + q.y * k[j].y;
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)  // caught here: BUG_V2C_V3_SYNCWARP race
          S_smem[(row0 + lane_id / 8 + 4 * i) * S_LD + key0 + lane_id % 8 + 8 * j] = S_rmem[i][j] * scale;
    }
#if BUG == BUG_V2C_V3_SYNCWARP
    __syncwarp();
#else
    __syncthreads();  // a row's scores come from several warps
#endif

#pragma unroll 1  // rows one after the other: the registers of one row are all there are
    for (int r = 0; r < ROWS_PER_WARP; ++r) {
      const int row = first_row + r;
      const int visible = visible_keys(q0 + row, len_q, len_kv, causal) - t * BN;  // of this tile's keys
      float* S_row = S_smem + row * S_LD;                                          // [BN]
      float* stage = stage_row(stage_out, q0 + row, len_q, len_kv);                // [len_kv], ONLY builds

      // --- mask
      float S_rmem[BN / 32];  // the scores of the keys lane_id + 32 * h
#pragma unroll
      for (int h = 0; h < BN / 32; ++h) {  // caught here: BUG_V2C_V3_SYNCWARP race uninitialised
        S_rmem[h] = mask_score(S_row[h * 32 + lane_id], h * 32 + lane_id, visible);
        stage_store<ONLY_QK>(stage, t * BN + h * 32 + lane_id, len_kv, S_rmem[h]);
      }

      // --- online softmax
      const float m_old = m_smem[row], l_old = l_smem[row];
      float m_new = S_rmem[0];
#pragma unroll
      for (int h = 1; h < BN / 32; ++h) m_new = fmaxf(m_new, S_rmem[h]);
      m_new = fmaxf(m_old, warp_max(m_new));
      const float correction = __expf(m_old - m_new);
      float sum = 0.f;
      stage_rescale(stage, lane_id, 32, t * BN, correction);
#pragma unroll
      for (int h = 0; h < BN / 32; ++h) {
        const float p = __expf(S_rmem[h] - m_new);
        stage_store<ONLY_SOFTMAX>(stage, t * BN + h * 32 + lane_id, len_kv, p);
        S_row[h * 32 + lane_id] = p;  // from here on the row is P
        sum += p;
      }
      __syncwarp();  // every lane reads the whole row of P below, and has read the old m and l
#if BUG == BUG_V2C_V3_REDUCE32
      sum = 0.f;
      for (int n = 0; n < BN; ++n) sum += S_row[n];  // the same in every lane, and yet:
#endif
      sum = warp_sum(sum);
      if (lane_id == 0) {
        m_smem[row] = m_new;
        l_smem[row] = l_old * correction + sum;
      }

      // --- O += P V
      float2* O_row = reinterpret_cast<float2*>(O_smem + row * D);  // [D / 2]
      float2 O_rmem[PAIRS];
      for (int e = 0; e < PAIRS; ++e) {
        O_rmem[e] = O_row[e * 32 + lane_id];
        O_rmem[e].x *= correction;
        O_rmem[e].y *= correction;
      }
#pragma unroll 4
      for (int n = 0; n < BN; ++n) {
        const float p = S_row[n];
        for (int e = 0; e < PAIRS; ++e) {
          const float2 v =
              __half22float2(reinterpret_cast<const __half2*>(V_tile + n * LD)[e * 32 + lane_id]);
          O_rmem[e].x += p * v.x;
          O_rmem[e].y += p * v.y;
        }
      }
      for (int e = 0; e < PAIRS; ++e) O_row[e * 32 + lane_id] = O_rmem[e];
    }
  }

  // --- normalise and store O
  __syncwarp();  // lane 0 has written the rows' l
  for (int r = 0; r < ROWS_PER_WARP && q0 + first_row + r < len_q; ++r) {
    const int row = first_row + r;
    const int visible = visible_keys(q0 + row, len_q, len_kv, causal);
    const float inv_l = visible > 0 ? 1.f / l_smem[row] : 0.f;  // a row that sees no key gives 0
    stage_rescale(stage_row(stage_out, q0 + row, len_q, len_kv), lane_id, 32, len_kv, inv_l);
    if (STAGE_BUILD) continue;
    const float2* O_row = reinterpret_cast<const float2*>(O_smem + row * D);  // [D / 2]
    __half2* out = reinterpret_cast<__half2*>(O + (size_t)(q0 + row) * D);    // [D / 2]
    float2 O_rmem[PAIRS];
    for (int e = 0; e < PAIRS; ++e) {
      O_rmem[e] = O_row[e * 32 + lane_id];
      out[e * 32 + lane_id] = __floats2half2_rn(O_rmem[e].x * inv_l, O_rmem[e].y * inv_l);
    }
  }
}

template <int D>
int launch_v2c_v3(const void* q, const void* k, const void* v, void* o, int batch, int heads, int len_q,
                  int len_kv, float scale, int causal, void* stream) {
  const dim3 grid((len_q + Tile<D>::BM - 1) / Tile<D>::BM, heads, batch);
  return LAUNCH(v2c_v3<D>, grid, dim3(THREADS), Tile<D>::SMEM, stream, (const __half*)q, (const __half*)k,
                (const __half*)v, (__half*)o, len_q, len_kv, scale, causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64)
    return launch_v2c_v3<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128)
    return launch_v2c_v3<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
