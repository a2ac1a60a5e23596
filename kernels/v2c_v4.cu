// v2c_v4: the scores come from the tensor cores: a warp's 16x16 patch of Q K^T is a WMMA product.
//
// What changed against v2c_v3: the patches are WMMA products, and K is transposed while it is loaded,
//   [keys][d] to [d][keys], so that both factors are row-major. Softmax and P V are as they were.
// Why it should help: one mma_sync does 4096 multiply-adds, and a fragment is loaded 16 bytes a lane.
// Source: CUDA C++ Programming Guide, "Warp matrix functions"; transposing on load is the owner's.
// Limits: cp.async cannot transpose: K passes through registers and leaves as 2-byte stores, and its latency
//   is no longer hidden. P V is scalar still, and most of the time.
// Known failures, kept as builds: BUG_V2C_V1: the skeleton gave every warp its own temporaries for S and P V,
//   34 KB each: the launch is refused, by an H100 (227 KB) too. BUG_V2C_V2: it launches, but K lies as it
//   came, so the product is Q K and not Q K^T (d=128: of a tile partly unwritten), and the scores are scaled
//   twice.
#include "common.cuh"

#include <mma.h>
using namespace nvcuda;

constexpr int WARPS = 8;
constexpr int THREADS = WARPS * 32;

template <int D>
struct Tile {
  static constexpr int TEMPORARIES =
      BUG == BUG_V2C_V1 ? WARPS : 1;            // of S and P V: the block's, or each warp's
  static constexpr int BM = D == 64 ? 64 : 48;  // rows, as in v2b
  static constexpr int BN = D == 64 ? 64 : 32;  // keys
  // Row strides in shared memory. 16 bytes more turn each row's start by 4 banks, and still suit cp.async.
  static constexpr int LD = D + 8;      // Q, V, in halves
  static constexpr int KT_LD = BN + 8;  // K^T, in halves
  static constexpr int S_LD = BN + 8;   // S, in floats: rows written together lie 8 banks apart
  static constexpr size_t SMEM = ((BM + 2 * BN) * LD + 2 * D * KT_LD) * sizeof(__half) +
                                 BM * (TEMPORARIES * (S_LD + D) + 2) * sizeof(float);
};

template <int D>
__global__ void __launch_bounds__(THREADS) v2c_v4(const __half* __restrict__ Q,  // [batch * heads, len_q, D]
                                                  const __half* __restrict__ K,  // [batch * heads, len_kv, D]
                                                  const __half* __restrict__ V,  // [batch * heads, len_kv, D]
                                                  __half* __restrict__ O,        // [batch * heads, len_q, D]
                                                  int len_q, int len_kv, float scale, int causal) {
  constexpr int BM = Tile<D>::BM, BN = Tile<D>::BN;
  constexpr int LD = Tile<D>::LD, KT_LD = Tile<D>::KT_LD, S_LD = Tile<D>::S_LD;
  constexpr int ROWS_PER_WARP = BM / WARPS;
  constexpr int PAIRS = D / 64;  // P V: a lane holds the columns 2 * lane_id + 64 * e and the one after it
  DYN_SMEM(smem);
  __half* Q_smem = reinterpret_cast<__half*>(smem);                // [BM][LD]
  __half* KT_smem = Q_smem + BM * LD;                              // [2][D][KT_LD]
  __half* V_smem = KT_smem + 2 * D * KT_LD;                        // [2][BN][LD]
  float* S_smem = reinterpret_cast<float*>(V_smem + 2 * BN * LD);  // [BM][S_LD], scores, then probabilities
  float* O_smem = S_smem + Tile<D>::TEMPORARIES * BM * S_LD;       // [BM][D]
  float* m_smem = O_smem + Tile<D>::TEMPORARIES * BM * D;          // [BM]
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
    copy_rows_async<BN, D, LD, THREADS>(V_smem + t % 2 * BN * LD, V, t * BN, len_kv);
    __pipeline_commit();
    __half* KT_tile = KT_smem + t % 2 * D * KT_LD;  // [D][KT_LD]
#pragma unroll
    for (int i = threadIdx.x; i < BN * D / 8; i += THREADS) {
      // Neighbouring lanes have neighbouring keys: their stores fill words, one row of K^T at a time.
      const int key = i % BN, c = i / BN * 8;
      const uint4 chunk = *reinterpret_cast<const uint4*>(K + (size_t)min(t * BN + key, len_kv - 1) * D + c);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const __half k = reinterpret_cast<const __half*>(&chunk)[j];
#if BUG == BUG_V2C_V2
        KT_tile[key * KT_LD + c + j] = k;
#else
        KT_tile[(c + j) * KT_LD + key] = k;
#endif
      }
    }
  };
  load_tile(0);
  for (int t = 0; t < tiles; ++t) {
    __pipeline_wait_prior(0);  // this thread's part of tile t (and of Q) has landed
    __syncthreads();           // so has everyone's; and everyone is done with tile t - 1: its stage and S
    if (t + 1 < tiles) load_tile(t + 1);
    const __half* KT_tile = KT_smem + t % 2 * D * KT_LD;  // [D][KT_LD]
    const __half* V_tile = V_smem + t % 2 * BN * LD;      // [BN][LD]

    // --- scores S = Q K^T
#pragma unroll 1  // a warp has 2 patches at most: no code for more
    for (int patch = warp_id; patch < BM / 16 * (BN / 16); patch += WARPS) {
      const int row0 = patch / (BN / 16) * 16, key0 = patch % (BN / 16) * 16;
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> S_frag;
      wmma::fill_fragment(S_frag, 0.f);
#pragma unroll
      for (int c = 0; c < D; c += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> Q_frag;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> KT_frag;
        wmma::load_matrix_sync(Q_frag, Q_smem + row0 * LD + c, LD);
        wmma::load_matrix_sync(KT_frag, KT_tile + c * KT_LD + key0, KT_LD);
        wmma::mma_sync(S_frag, Q_frag, KT_frag, S_frag);
      }
      for (int i = 0; i < S_frag.num_elements; ++i) S_frag.x[i] *= scale;
      wmma::store_matrix_sync(S_smem + row0 * S_LD + key0, S_frag, S_LD, wmma::mem_row_major);
    }
    __syncthreads();  // a row's scores come from several warps

#pragma unroll 1  // rows one after the other: the registers of one row are all there are
    for (int r = 0; r < ROWS_PER_WARP; ++r) {
      const int row = first_row + r;
      const int visible = visible_keys(q0 + row, len_q, len_kv, causal) - t * BN;  // of this tile's keys
      float* S_row = S_smem + row * S_LD;                                          // [BN]
      float* stage = stage_row(stage_out, q0 + row, len_q, len_kv);                // [len_kv], ONLY builds

      // --- mask
      float S_rmem[BN / 32];  // the scores of the keys lane_id + 32 * h
#pragma unroll
      for (int h = 0; h < BN / 32; ++h) {
        float s = S_row[h * 32 + lane_id];
        if (BUG == BUG_V2C_V2) s *= scale;  // the fragment was scaled already
        S_rmem[h] = mask_score(s, h * 32 + lane_id, visible);
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
int launch_v2c_v4(const void* q, const void* k, const void* v, void* o, int batch, int heads, int len_q,
                  int len_kv, float scale, int causal, void* stream) {
  const dim3 grid((len_q + Tile<D>::BM - 1) / Tile<D>::BM, heads, batch);
  return LAUNCH(v2c_v4<D>, grid, dim3(THREADS), Tile<D>::SMEM, stream, (const __half*)q, (const __half*)k,
                (const __half*)v, (__half*)o, len_q, len_kv, scale, causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64)
    return launch_v2c_v4<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128)
    return launch_v2c_v4<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
