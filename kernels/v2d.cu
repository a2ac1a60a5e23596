// v2d_a, v2d_b, v2d_c: ldmatrix and mma.sync; S, P and O never leave the registers.
//
// What changed:
//   v2d_a (SWIZZLE=0 STAGES=2) against v2c_v5: mma.sync.m16n8k16 instead of WMMA. The layout of its fragments
//     is documented, so a lane knows which rows and keys it holds: the softmax runs on the accumulators, and
//     P is the next product's A operand as it lies. A warp owns 16 rows whole: a row's statistics are two
//     shuffles away, and a tile needs one barrier.
//   v2d_b (SWIZZLE=1 STAGES=2) against v2d_a: the 16-byte chunks of a row are XORed with the row's number.
//   v2d_c (SWIZZLE=1 STAGES=3) against v2d_b: two tiles of K and V in flight instead of one.
// Why it should help: a, neither S nor O passes through shared memory. b, the 8 rows of an ldmatrix lie in 8
//   different groups of banks and not all in one (1 wavefront for 8). c, a load has two tiles' arithmetic to
//   arrive in; it costs memory, 56 KB for 40 at d=64, which leaves an SM of sm_89 one block for two.
// Source: Dao, "FlashAttention-2" (arXiv 2307.08691), section 3.3 (warps split the rows, not the keys); PTX
//   ISA, "Matrix Fragments for mma.m16n8k16"; the swizzle is CUTLASS' Swizzle<3, 3, 3>.
// Limits: 0 < scale < 45000, or UNSCALED_M_START does not stay finite when it is scaled. mma.sync reaches 60
//   to 65 % of the rate of wgmma on Hopper (v2e). Causal blocks are of unequal length and start in order of
//   their rows, the longest last.
// Known failures: none.
#include "ptx.cuh"

#ifndef SWIZZLE
#define SWIZZLE 1
#endif
#ifndef STAGES
#define STAGES 3
#endif
static_assert(STAGES >= 2, "one tile is read while another is loaded");
#ifndef WARPS
#define WARPS 4
#endif
#ifndef KEYS
#define KEYS 64  // a tile at d=64, and half of them at d=128
#endif
static_assert(KEYS % 32 == 0, "two blocks of 8 keys are one fragment, at d=128 too");

constexpr int THREADS = WARPS * 32;
constexpr int BM = WARPS * 16;  // rows a block: 16 is the M of one mma, and a warp owns one such strip
// Keys a tile. Half as many at d=128: with 64, three stages would take 112 KB of shared memory, over the budget of 99.
template <int D>
constexpr int BN = D == 64 ? KEYS : KEYS / 2;
template <int D>
constexpr size_t SMEM = (BM + 2 * STAGES * BN<D>)*D * sizeof(__half);
// Where a row's maximum starts: below any score, and still finite when it is scaled.
constexpr float UNSCALED_M_START = M_START / 65536;  // by a scale * log2(e) of up to 65536
constexpr float LOG2E = 1.4426950408889634f;  // exp(x) = 2^(x log2 e), and 2^x is what the hardware has

// Where 16-byte chunk `chunk` of row `row` lies in a tile [rows][D]. Rows are 128 or 256 bytes apart: left
// alone, a chunk is in the same 4 of the 32 banks in every row. The XOR moves it in each row of an ldmatrix.
template <int D>
__device__ __forceinline__ int chunk_at(int row, int chunk) {
  return row * D + (SWIZZLE ? chunk ^ (row & 7) : chunk) * 8;
}

// Starts the copy of src [rows][D] to the tile dst [ROWS][D] in shared memory; rows past the end become 0.
template <int ROWS, int D>
__device__ __forceinline__ void copy_tile_async(__half* dst, const __half* src, int rows) {
  constexpr int CHUNKS = D / 8;           // in a row
  constexpr int STEP = THREADS / CHUNKS;  // rows; a multiple of 8, so that a thread's chunk is swizzled alike
  const int first = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
#pragma unroll
  for (int row = first; row < first + ROWS; row += STEP)
    cp_async_16(dst + chunk_at<D>(row, chunk), src + row * D + chunk * 8, row < rows);
}

template <int D>  // 16 and 12 warps an SM leave 128 and 168 registers a thread: enough, no spills
__global__ void __launch_bounds__(THREADS, (D == 64 ? 16 : 12) / WARPS)
    v2d(const __half* __restrict__ Q,  // [batch * heads, len_q, D]
        const __half* __restrict__ K,  // [batch * heads, len_kv, D]
        const __half* __restrict__ V,  // [batch * heads, len_kv, D]
        __half* __restrict__ O,        // [batch * heads, len_q, D]
        int len_q, int len_kv, float scale, int causal) {
  constexpr int BN = ::BN<D>;
  DYN_SMEM(smem);
  __half* Q_smem = reinterpret_cast<__half*>(smem);  // [BM][D], and O on the way out
  __half* K_smem = Q_smem + BM * D;                  // [STAGES][BN][D]
  __half* V_smem = K_smem + STAGES * BN * D;         // [STAGES][BN][D]
  const int warp_id = threadIdx.x / 32, lane_id = threadIdx.x % 32;
  const int q0 = blockIdx.x * BM;       // the block's first row
  const int strip = warp_id * 16;       // the warp's first row in the tile
  const int row = strip + lane_id / 4;  // a lane holds parts of this row and of the one 8 below
  const int col = lane_id % 4 * 2;      // of every 8 columns it holds this one and the next
  void* const stage_out = O;            // ONLY builds
  const float scale_log2 = scale * LOG2E;
  Q += head_of_block() * len_q * D;
  K += head_of_block() * len_kv * D;
  V += head_of_block() * len_kv * D;
  O += head_of_block() * len_q * D;

  // --- load Q
  copy_tile_async<BM, D>(Q_smem, Q + (size_t)q0 * D, len_q - q0);
  __pipeline_commit();

  // --- tile loop: load K,V
  const int kv_end = keys_to_visit(min(q0 + BM, len_q) - 1, len_q, len_kv, causal);
  const int tiles = (kv_end + BN - 1) / BN;
  auto load_tile = [&](int t, int stage) {
    if (t < tiles) {
      copy_tile_async<BN, D>(K_smem + stage * BN * D, K + (size_t)t * BN * D, len_kv - t * BN);
      copy_tile_async<BN, D>(V_smem + stage * BN * D, V + (size_t)t * BN * D, len_kv - t * BN);
    }
    __pipeline_commit();  // past the last tile too: the waits count groups
  };
#pragma unroll
  for (int t = 0; t < STAGES - 1; ++t) load_tile(t, t);

  __pipeline_wait_prior(STAGES - 1);  // all but the tiles: this thread's part of Q has landed
  __syncthreads();                    // so has everyone's
  uint32_t Q_rmem[D / 16][4];         // [16][D], the warp's strip, for all tiles
#pragma unroll
  for (int k = 0; k < D / 16; ++k)
    ldmatrix_x4(Q_rmem[k], Q_smem + chunk_at<D>(strip + lane_id % 16, k * 2 + lane_id / 16));

  float O_rmem[D / 8][4] = {};  // [16][D] in blocks of 8 columns: row: 0, 1; row + 8: 2, 3
  float m_rmem[2] = {UNSCALED_M_START, UNSCALED_M_START};
  float l_rmem[2] = {0.f, 0.f};  // of this lane's columns; the row's four lanes are added at the end
  int visible[2];
  float* stage_rows[2];  // [len_kv] each
  for (int h = 0; h < 2; ++h) {
    visible[h] = visible_keys(q0 + row + h * 8, len_q, len_kv, causal);
    stage_rows[h] = stage_row(stage_out, q0 + row + h * 8, len_q, len_kv);
  }
  const int seen_by_all = visible_keys(q0 + strip, len_q, len_kv, causal);  // by every row of the strip

  int stage = 0, spare = STAGES - 1;  // the stage of tile t, and the one that is being filled
  for (int t = 0; t < tiles; ++t) {
    __pipeline_wait_prior(STAGES - 2);  // this thread's part of tile t has landed
    __syncthreads();  // so has everyone's; and everyone is done with tile t - 1, the spare stage
    load_tile(t + STAGES - 1, spare);
    const __half* K_tile = K_smem + stage * BN * D;  // [BN][D]
    const __half* V_tile = V_smem + stage * BN * D;  // [BN][D]
    spare = stage;
    stage = stage + 1 < STAGES ? stage + 1 : 0;  // t % STAGES would be a multiplication an address

    // --- scores S = Q K^T
    float S_rmem[BN / 8][4] = {};  // [16][BN], laid out as O_rmem
#pragma unroll
    for (int k = 0; k < D / 16; ++k)
#pragma unroll
      for (int n = 0; n < BN / 8; n += 2) {
        uint32_t K_rmem[4];  // 16 keys x 16 columns: B fragments of two mma
        ldmatrix_x4(K_rmem,
                    K_tile + chunk_at<D>(n * 8 + lane_id / 16 * 8 + lane_id % 8, k * 2 + lane_id / 8 % 2));
        mma_m16n8k16(S_rmem[n], Q_rmem[k], K_rmem[0], K_rmem[1]);
        mma_m16n8k16(S_rmem[n + 1], Q_rmem[k], K_rmem[2], K_rmem[3]);
      }

    // --- mask
    if (ONLY != ONLY_ALL || (t + 1) * BN > seen_by_all)  // only at the diagonal and at the end
#pragma unroll
      for (int n = 0; n < BN / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = t * BN + n * 8 + col + i % 2;
          S_rmem[n][i] = mask_score(S_rmem[n][i], key, visible[i / 2]);
          stage_store<ONLY_QK>(stage_rows[i / 2], key, len_kv, S_rmem[n][i] * scale);
        }

        // --- online softmax
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float m_new = m_rmem[h];  // of the scores before they are scaled
#pragma unroll
      for (int n = 0; n < BN / 8; ++n) m_new = fmaxf(m_new, fmaxf(S_rmem[n][h * 2], S_rmem[n][h * 2 + 1]));
      m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, 1));  // a row's four lanes are neighbours
      m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, 2));
      const float base = m_new * scale_log2;
      // The difference first: 0 where the maximum stays. m * scale_log2 - base would be one fused operation,
      // and what base was rounded by is huge in a row that sees no key.
      const float correction = exp2_approx((m_rmem[h] - m_new) * scale_log2);
      m_rmem[h] = m_new;
      l_rmem[h] *= correction;
      for (int i = 0; i < 2; ++i) stage_rescale(stage_rows[h], col + i, 8, min(t * BN, len_kv), correction);
#pragma unroll
      for (int n = 0; n < BN / 8; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float p = exp2_approx(S_rmem[n][h * 2 + i] * scale_log2 - base);
          stage_store<ONLY_SOFTMAX>(stage_rows[h], t * BN + n * 8 + col + i, len_kv, p);
          S_rmem[n][h * 2 + i] = p;  // from here on it is P
          l_rmem[h] += p;
        }
#pragma unroll
      for (int d = 0; d < D / 8; ++d) {
        O_rmem[d][h * 2] *= correction;
        O_rmem[d][h * 2 + 1] *= correction;
      }
    }

    // --- O += P V
#pragma unroll
    for (int k = 0; k < BN / 16; ++k) {
      const float(&P0)[4] = S_rmem[2 * k],
            (&P1)[4] = S_rmem[2 * k + 1];  // two blocks of 8 keys are one A fragment
      const uint32_t P_rmem[4] = {pack_half2(P0[0], P0[1]), pack_half2(P0[2], P0[3]),
                                  pack_half2(P1[0], P1[1]), pack_half2(P1[2], P1[3])};
#pragma unroll
      for (int d = 0; d < D / 8; d += 2) {
        uint32_t V_rmem[4];  // 16 keys x 16 columns, transposed: B fragments of two mma
        ldmatrix_x4_trans(V_rmem, V_tile + chunk_at<D>(k * 16 + lane_id % 16, d + lane_id / 16));
        mma_m16n8k16(O_rmem[d], P_rmem, V_rmem[0], V_rmem[1]);
        mma_m16n8k16(O_rmem[d + 1], P_rmem, V_rmem[2], V_rmem[3]);
      }
    }
  }

  // --- normalise and store O
  __syncwarp();  // O takes the place of the strip of Q: with no tile, no barrier lies between
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float l = l_rmem[h];
    l += __shfl_xor_sync(FULL_WARP, l, 1);
    l += __shfl_xor_sync(FULL_WARP, l, 2);
    const float inv_l = l > 0.f ? __fdividef(1.f, l) : 0.f;  // a row that sees no key gives 0
    for (int i = 0; i < 2; ++i) stage_rescale(stage_rows[h], col + i, 8, len_kv, inv_l);
#pragma unroll
    for (int d = 0; d < D / 8; ++d)
      *reinterpret_cast<uint32_t*>(Q_smem + chunk_at<D>(row + h * 8, d) + col) =
          pack_half2(O_rmem[d][h * 2] * inv_l, O_rmem[d][h * 2 + 1] * inv_l);
  }
  __syncwarp();  // the rows are whole before other lanes store them, 16 bytes a lane
#pragma unroll
  for (int i = lane_id; i < 16 * D / 8; i += 32) {
    const int out_row = strip + i / (D / 8), chunk = i % (D / 8);
    if (!STAGE_BUILD && q0 + out_row < len_q)
      *reinterpret_cast<uint4*>(O + (size_t)(q0 + out_row) * D + chunk * 8) =
          *reinterpret_cast<const uint4*>(Q_smem + chunk_at<D>(out_row, chunk));
  }
}

template <int D>
int launch_v2d(const void* q, const void* k, const void* v, void* o, int batch, int heads, int len_q,
               int len_kv, float scale, int causal, void* stream) {
  return LAUNCH(v2d<D>, dim3((len_q + BM - 1) / BM, heads, batch), dim3(THREADS), SMEM<D>, stream,
                (const __half*)q, (const __half*)k, (const __half*)v, (__half*)o, len_q, len_kv, scale,
                causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64) return launch_v2d<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128) return launch_v2d<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
