// v2b: one pass over the keys (streaming softmax), and every row belongs to one warp.
//
// What changed against v2: a row's m, l and O have one owner. Two warps shared a row there, each with half
//   the keys of a tile, and updated all three with nothing between them. Against v1: one pass; the rows of a
//   block share the tiles of K and V, and cp.async brings the next one while this one is worked on.
// Why it should help: K and V are read once for 64 rows (d=128: 48), past the registers and behind the
//   arithmetic.
// Source: "Online normalizer calculation for softmax" (arXiv 1805.02867); "FlashAttention" (arXiv
//   2205.14135).
// How: 5 shuffles end a dot product and leave the score in all lanes; the lane whose turn it is keeps it, in
//   a register. So warp_max and warp_sum reduce values that differ. All scores in every lane would be local
//   memory.
// Not so in the owner's notes: that the lanes held independent values after a dot product (the broadcast had
//   left the same score in all; it was right because nothing reduced them); and a grid of (8,16), where tiles
//   of 64 rows make 8 tiles x 8 heads of the headline workload.
// Limits: 6 shuffles a row and key, for 4 (d=128: 8) multiply-adds a lane. The owner's build took 79 KB of
//   shared memory (d=128: 97) for these tiles, this one takes 56 (68). On the owner's L4, v1 is faster.
// Known failures, kept as builds: BUG_V2, as said (race). BUG_V2B_SMEM: tiles of 192x192 (d=128: 96x96) take
//   170 KB, over the budget of 99; an H100 runs it, an L4 refuses. BUG_V2B_WARP7: the warp that issued the
//   copies was kept out of the arithmetic, and its rows (56 to 63 of a tile) end as 0/0.
#include "common.cuh"

constexpr int WARPS = 8;
constexpr int THREADS = WARPS * 32;
constexpr int WARPS_PER_ROW = BUG == BUG_V2 ? 2 : 1;

template <int D>
struct Tile {
  // d=128: 64x64 would take 112 KB; 48x32 is the owner's, and fits v2c_v5 too. BN: 32 keys a lane's score.
  static constexpr int BM = BUG == BUG_V2B_SMEM ? (D == 64 ? 192 : 96) : D == 64 ? 64 : 48;  // rows
  static constexpr int BN = BUG == BUG_V2B_SMEM ? (D == 64 ? 192 : 96) : D == 64 ? 64 : 32;  // keys
  static constexpr size_t SMEM = (BM + 4 * BN) * D * sizeof(__half) + BM * (D + 2) * sizeof(float);
};

template <int D>
__global__ void __launch_bounds__(THREADS) v2b(const __half* __restrict__ Q,  // [batch * heads, len_q, D]
                                               const __half* __restrict__ K,  // [batch * heads, len_kv, D]
                                               const __half* __restrict__ V,  // [batch * heads, len_kv, D]
                                               __half* __restrict__ O,        // [batch * heads, len_q, D]
                                               int len_q, int len_kv, float scale, int causal) {
  constexpr int BM = Tile<D>::BM, BN = Tile<D>::BN;
  constexpr int ROWS_PER_WARP = BM / WARPS * WARPS_PER_ROW;
  constexpr int PAIRS = D / 64;  // a lane holds the columns 2 * lane_id + 64 * e and the one after it
  DYN_SMEM(smem);
  __half* Q_smem = reinterpret_cast<__half*>(smem);               // [BM][D]
  __half* K_smem = Q_smem + BM * D;                               // [2][BN][D]
  __half* V_smem = K_smem + 2 * BN * D;                           // [2][BN][D]
  float* O_smem = reinterpret_cast<float*>(V_smem + 2 * BN * D);  // [BM][D]
  float* m_smem = O_smem + BM * D;                                // [BM]
  float* l_smem = m_smem + BM;                                    // [BM]
  const int warp_id = threadIdx.x / 32, lane_id = threadIdx.x % 32;
  const int q0 = blockIdx.x * BM;                                 // the block's first row
  const int first_row = warp_id / WARPS_PER_ROW * ROWS_PER_WARP;  // the warp's first row in the tile
  void* const stage_out = O;                                      // ONLY builds
  Q += head_of_block() * len_q * D;
  K += head_of_block() * len_kv * D;
  V += head_of_block() * len_kv * D;
  O += head_of_block() * len_q * D;

  // --- load Q
  copy_rows_async<BM, D, D, THREADS>(Q_smem, Q, q0, len_q);
  for (int i = threadIdx.x; i < BM * D; i += THREADS) O_smem[i] = 0.f;
  for (int i = threadIdx.x; i < BM; i += THREADS) {
    m_smem[i] = M_START;
    l_smem[i] = 0.f;
  }

  // --- tile loop: load K,V
  const int kv_end = keys_to_visit(min(q0 + BM, len_q) - 1, len_q, len_kv, causal);
  const int tiles = max(1, (kv_end + BN - 1) / BN);  // at least one: its barrier is also Q's and O's
  auto load_tile = [&](int t) {
    copy_rows_async<BN, D, D, THREADS>(K_smem + t % 2 * BN * D, K, t * BN, len_kv);
    copy_rows_async<BN, D, D, THREADS>(V_smem + t % 2 * BN * D, V, t * BN, len_kv);
    __pipeline_commit();
  };
  load_tile(0);
  for (int t = 0; t < tiles; ++t) {
    __pipeline_wait_prior(0);  // this thread's part of tile t (and of Q) has landed
    __syncthreads();           // so has everyone's; and everyone is done with tile t - 1, whose stage is next
    if (t + 1 < tiles) load_tile(t + 1);
    const __half* K_tile = K_smem + t % 2 * BN * D;  // [BN][D]
    const __half* V_tile = V_smem + t % 2 * BN * D;  // [BN][D]
    if (BUG == BUG_V2B_WARP7 && warp_id == 7) continue;
#pragma unroll 1  // rows one after the other: the registers of one row are all there are
    for (int r = 0; r < ROWS_PER_WARP; ++r) {
      const int row = first_row + r;
      const int visible = visible_keys(q0 + row, len_q, len_kv, causal) - t * BN;  // of this tile's keys
      float* stage = stage_row(stage_out, q0 + row, len_q, len_kv);                // [len_kv], ONLY builds

      // --- scores S = Q K^T
      float2 Q_rmem[PAIRS];
      for (int e = 0; e < PAIRS; ++e)
        Q_rmem[e] = __half22float2(reinterpret_cast<const __half2*>(Q_smem + row * D)[e * 32 + lane_id]);
      float S_rmem[BN / 32];  // the scores of the keys lane_id + 32 * h
#pragma unroll
      for (int h = 0; h < BN / 32; ++h) {
        S_rmem[h] = -INFINITY;  // what another warp of the row computes, where there is one
#pragma unroll 4                // enough for the shuffles of one key to overlap the loads of the next
        for (int i = warp_id % WARPS_PER_ROW; i < 32; i += WARPS_PER_ROW) {
          float dot = 0.f;
          for (int e = 0; e < PAIRS; ++e) {
            const float2 k =
                __half22float2(reinterpret_cast<const __half2*>(K_tile + (h * 32 + i) * D)[e * 32 + lane_id]);
            dot += Q_rmem[e].x * k.x + Q_rmem[e].y * k.y;
          }
          dot = warp_sum(dot);
          if (lane_id == i) S_rmem[h] = dot * scale;
        }
      }

      // --- mask
#pragma unroll
      for (int h = 0; h < BN / 32; ++h) {
        S_rmem[h] = mask_score(S_rmem[h], h * 32 + lane_id, visible);
        stage_store<ONLY_QK>(stage, t * BN + h * 32 + lane_id, len_kv, S_rmem[h]);
      }

      // --- online softmax
      const float m_old = m_smem[row], l_old = l_smem[row];  // caught here: BUG_V2 race
      float m_new = S_rmem[0];
#pragma unroll
      for (int h = 1; h < BN / 32; ++h) m_new = fmaxf(m_new, S_rmem[h]);
      m_new = fmaxf(m_old, warp_max(m_new));
      const float correction = __expf(m_old - m_new);
      float sum = 0.f;
      stage_rescale(stage, lane_id, 32, t * BN, correction);
#pragma unroll
      for (int h = 0; h < BN / 32; ++h) {
        S_rmem[h] = __expf(S_rmem[h] - m_new);  // from here on it is P
        stage_store<ONLY_SOFTMAX>(stage, t * BN + h * 32 + lane_id, len_kv, S_rmem[h]);
        sum += S_rmem[h];
      }
      sum = warp_sum(sum);
      __syncwarp();  // every lane has read the old m and l
      if (lane_id == 0) {
        m_smem[row] = m_new;  // caught here: BUG_V2 race
        l_smem[row] = l_old * correction + sum;
      }

      // --- O += P V
      float2* O_row = reinterpret_cast<float2*>(O_smem + row * D);  // [D / 2]
      float2 O_rmem[PAIRS];
      for (int e = 0; e < PAIRS; ++e) {
        O_rmem[e] = O_row[e * 32 + lane_id];  // caught here: BUG_V2 race
        O_rmem[e].x *= correction;
        O_rmem[e].y *= correction;
      }
#pragma unroll
      for (int h = 0; h < BN / 32; ++h)
#pragma unroll 4
        for (int i = 0; i < 32; ++i) {
          const float p = __shfl_sync(FULL_WARP, S_rmem[h], i);
          for (int e = 0; e < PAIRS; ++e) {
            const float2 v =
                __half22float2(reinterpret_cast<const __half2*>(V_tile + (h * 32 + i) * D)[e * 32 + lane_id]);
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
int launch_v2b(const void* q, const void* k, const void* v, void* o, int batch, int heads, int len_q,
               int len_kv, float scale, int causal, void* stream) {
  const dim3 grid((len_q + Tile<D>::BM - 1) / Tile<D>::BM, heads, batch);
  return LAUNCH(v2b<D>, grid, dim3(THREADS), Tile<D>::SMEM, stream, (const __half*)q, (const __half*)k,
                (const __half*)v, (__half*)o, len_q, len_kv, scale, causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64) return launch_v2b<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128) return launch_v2b<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
