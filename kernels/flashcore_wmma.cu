// flashcore_wmma: both products on tensor cores, one pass over the keys; the warps split the keys of a tile.
//
// What changed against flashcore_vec: a block takes 32 rows and walks the keys in tiles of 32 (streaming
//   softmax, as in v2b). Each of its 4 warps owns one 16x16 block of the score tile, and multiplies that
//   block of P with its 16 rows of V. K lies transposed in shared memory, [d][keys], so that both products
//   are of row-major tiles; the output before it is normalised, U, lies there too.
// What changed against flashcore_wmma_broken: the two warps that split the keys of 16 rows have a U each, and
//   the two are added at the end.
// Why it should help: K and V are read once for 32 rows, and one mma_sync stands for 4096 scalar
//   multiply-adds.
// Source: CUDA C++ Programming Guide, "Warp matrix functions"; sKT[D][N], U in shared memory and the split of
//   the keys are the owner's. FlashAttention-2 (arXiv 2307.08691), section 3.3, says why not to split the
//   keys: the partial sums must meet, here with twice the memory for U and twice the rescaling.
// Limits: WMMA does not say which lane holds which element, so S, P and U pass through shared memory (v2d is
//   the answer), with four barriers a tile. The loads of a tile are waited for, and nothing hides them.
// Known failures, kept as builds: BUG_FLASHCORE_WMMA_BROKEN: one U for both warps; each loads it, adds its
//   partial sums and stores it, with nothing between them (the owner's build was off by 4.28).
//   BUG_FLASHCORE_WMMA_PNORM: P is divided by the sum so far before P V, and U by the whole sum at the end:
//     it is normalised twice (the owner's build was off by 0.45).
#include "common.cuh"

#include <mma.h>
using namespace nvcuda;

#define BUG_FLASHCORE_WMMA_BROKEN 20
#define BUG_FLASHCORE_WMMA_PNORM 21

constexpr int WARPS = 4;
constexpr int THREADS = WARPS * 32;
constexpr int VEC = 8;  // halves in 16 bytes
constexpr int BM = 32;  // rows a block, and
constexpr int BN = 32;  // keys a tile: 2 x 2 blocks of 16 x 16, one a warp; and a key a lane in the softmax
static_assert(BM == BN, "O takes the place of V");
constexpr int SLICES = BN / 16;  // of the keys: a U each
constexpr int ROWS_PER_WARP = BM / WARPS;
// Row strides. The padding turns the start of each row by some banks; fragments want multiples of 16 bytes.
template <int D>
constexpr int LD = D + 8;       // Q, V, in halves
constexpr int KT_LD = BN + 8;   // K^T, in halves
constexpr int S_LD = BN + 4;    // S, in floats
constexpr int P_LD = 2 * S_LD;  // P, in halves: it takes the place of S, row by row
template <int D>
constexpr int U_LD = D + 8;  // U, in floats
// d=64: 32 KB, three blocks on an SM of sm_89. d=128: 57 KB.
template <int D>
constexpr size_t SMEM =
    (D * KT_LD + BN * LD<D>)*sizeof(__half) + (BM * S_LD + SLICES * BM * U_LD<D>)*sizeof(float);

template <class Use>
using Fragment = wmma::fragment<Use, 16, 16, 16, __half, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

template <int D>  // 5 blocks an SM leave a thread 96 registers; ptxas by itself aims at 8 blocks, and spills
__global__ void __launch_bounds__(THREADS, 5)
    flashcore_wmma(const __half* __restrict__ Q,  // [batch * heads, len_q, D]
                   const __half* __restrict__ K,  // [batch * heads, len_kv, D]
                   const __half* __restrict__ V,  // [batch * heads, len_kv, D]
                   __half* __restrict__ O,        // [batch * heads, len_q, D]
                   int len_q, int len_kv, float scale, int causal) {
  constexpr int LD = ::LD<D>, U_LD = ::U_LD<D>, CHUNKS = D / VEC;
  DYN_SMEM(smem);
  __half* KT_smem = reinterpret_cast<__half*>(smem);           // [D][KT_LD], K transposed
  __half* V_smem = KT_smem + D * KT_LD;                        // [BN][LD], and O on the way out
  float* S_smem = reinterpret_cast<float*>(V_smem + BN * LD);  // [BM][S_LD]
  __half* P_smem = reinterpret_cast<__half*>(S_smem);          // [BM][P_LD], in the place of S
  float* U_smem = S_smem + BM * S_LD;                          // [SLICES][BM][U_LD]
  __half* Q_smem = reinterpret_cast<__half*>(U_smem);          // [BM][LD], until its fragments are loaded
  const int warp_id = threadIdx.x / 32, lane_id = threadIdx.x % 32;
  const int q0 = blockIdx.x * BM;                 // the block's first row
  const int strip = warp_id / SLICES * 16;        // products: the warp's first row in the tile
  const int slice = warp_id % SLICES;             // products: which 16 keys of the tile are the warp's
  const int first_row = warp_id * ROWS_PER_WARP;  // softmax: the warp's first row in the tile
  void* const stage_out = O;                      // ONLY builds
  Q += head_of_block() * len_q * D;
  K += head_of_block() * len_kv * D;
  V += head_of_block() * len_kv * D;
  O += head_of_block() * len_q * D;

  // --- load Q
  for (int i = threadIdx.x; i < BM * CHUNKS; i += THREADS) {
    const int row = i / CHUNKS, col = i % CHUNKS * VEC;  // past the end: the last
    *reinterpret_cast<uint4*>(Q_smem + row * LD + col) =
        *reinterpret_cast<const uint4*>(Q + (size_t)min(q0 + row, len_q - 1) * D + col);
  }
  __syncthreads();  // a strip of Q was loaded by all warps
  Fragment<wmma::matrix_a> Q_frag[D / 16];
#pragma unroll
  for (int k = 0; k < D / 16; ++k) wmma::load_matrix_sync(Q_frag[k], Q_smem + strip * LD + k * 16, LD);
  __syncthreads();  // all of Q is in fragments: U takes its place
  for (int i = threadIdx.x; i < SLICES * BM * U_LD; i += THREADS) U_smem[i] = 0.f;
  float m_rmem[ROWS_PER_WARP], l_rmem[ROWS_PER_WARP];  // l: of this lane's keys; added up at the end
#pragma unroll
  for (int r = 0; r < ROWS_PER_WARP; ++r) {
    m_rmem[r] = M_START;
    l_rmem[r] = 0.f;
  }

  // --- tile loop: load K,V
  const int kv_end = keys_to_visit(min(q0 + BM, len_q) - 1, len_q, len_kv, causal);
  for (int k0 = 0; k0 < kv_end; k0 += BN) {
    __syncthreads();  // everyone is done with the previous tile
#pragma unroll
    for (int i = threadIdx.x; i < BN * CHUNKS; i += THREADS) {
      // Neighbouring lanes take neighbouring keys: their 2-byte stores to a row of K^T lie side by side.
      const int key = i % BN, col = i / BN * VEC;
      const uint4 bits = *reinterpret_cast<const uint4*>(K + (size_t)min(k0 + key, len_kv - 1) * D + col);
      __half k[VEC];
      memcpy(k, &bits, sizeof k);
#pragma unroll
      for (int c = 0; c < VEC; ++c) KT_smem[(col + c) * KT_LD + key] = k[c];
    }
#pragma unroll
    for (int i = threadIdx.x; i < BN * CHUNKS; i += THREADS) {
      const int key = i / CHUNKS, col = i % CHUNKS * VEC;  // past the end: the last
      *reinterpret_cast<uint4*>(V_smem + key * LD + col) =
          *reinterpret_cast<const uint4*>(V + (size_t)min(k0 + key, len_kv - 1) * D + col);
    }
    __syncthreads();  // the tile is whole

    // --- scores S = Q K^T
    Accumulator S_frag;
    wmma::fill_fragment(S_frag, 0.f);
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      Fragment<wmma::matrix_b> K_frag;
      wmma::load_matrix_sync(K_frag, KT_smem + k * 16 * KT_LD + slice * 16, KT_LD);
      wmma::mma_sync(S_frag, Q_frag[k], K_frag, S_frag);
    }
    wmma::store_matrix_sync(S_smem + strip * S_LD + slice * 16, S_frag, S_LD, wmma::mem_row_major);
    __syncthreads();  // a row's scores come from two warps

    // --- mask
    float S_rmem[ROWS_PER_WARP];  // of key k0 + lane_id
#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; ++r) {
      const int row = first_row + r;
      S_rmem[r] = mask_score(S_smem[row * S_LD + lane_id] * scale, k0 + lane_id,
                             visible_keys(q0 + row, len_q, len_kv, causal));
      stage_store<ONLY_QK>(stage_row(stage_out, q0 + row, len_q, len_kv), k0 + lane_id, len_kv, S_rmem[r]);
    }
    __syncwarp();  // every lane has read the scores: P takes their place

    // --- online softmax
#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; ++r) {
      const int row = first_row + r;
      float* stage = stage_row(stage_out, q0 + row, len_q, len_kv);  // [len_kv], ONLY builds
      const float m_new = fmaxf(m_rmem[r], warp_max(S_rmem[r]));
      const float correction = __expf(m_rmem[r] - m_new);
      float p = __expf(S_rmem[r] - m_new);
      stage_rescale(stage, lane_id, BN, k0, correction);
      stage_store<ONLY_SOFTMAX>(stage, k0 + lane_id, len_kv, p);
      m_rmem[r] = m_new;
      l_rmem[r] = l_rmem[r] * correction + p;
      if (BUG == BUG_FLASHCORE_WMMA_PNORM) p /= warp_sum(l_rmem[r]);
      P_smem[row * P_LD + lane_id] = __float2half(p);
#pragma unroll
      for (int s = 0; s < SLICES; ++s)
#pragma unroll
        for (int c = lane_id; c < D; c += 32) U_smem[(s * BM + row) * U_LD + c] *= correction;
    }
    __syncthreads();  // a strip's P and U come from two warps

    // --- O += P V
    Fragment<wmma::matrix_a> P_frag;
    wmma::load_matrix_sync(P_frag, P_smem + strip * P_LD + slice * 16, P_LD);
    float* U_strip =
        U_smem + ((BUG == BUG_FLASHCORE_WMMA_BROKEN ? 0 : slice) * BM + strip) * U_LD;  // [16][U_LD]
#pragma unroll
    for (int d = 0; d < D; d += 16) {
      Fragment<wmma::matrix_b> V_frag;
      Accumulator U_frag;
      wmma::load_matrix_sync(V_frag, V_smem + slice * 16 * LD + d, LD);
      // caught here: BUG_FLASHCORE_WMMA_BROKEN race
      wmma::load_matrix_sync(U_frag, U_strip + d, U_LD, wmma::mem_row_major);
      wmma::mma_sync(U_frag, P_frag, V_frag, U_frag);
      wmma::store_matrix_sync(U_strip + d, U_frag, U_LD, wmma::mem_row_major);
    }
  }

  // --- normalise and store O
  __syncthreads();          // the sums of all slices; with no tile at all: the zeros
  __half* O_smem = V_smem;  // [BM][LD]
#pragma unroll
  for (int r = 0; r < ROWS_PER_WARP; ++r) {
    const int row = first_row + r;
    const float l = warp_sum(l_rmem[r]);
    const float inv_l = l > 0.f ? 1.f / l : 0.f;  // a row that sees no key gives 0
    stage_rescale(stage_row(stage_out, q0 + row, len_q, len_kv), lane_id, BN, kv_end, inv_l);
#pragma unroll
    for (int c = lane_id; c < D; c += 32) {
      float u = 0.f;
      for (int s = 0; s < SLICES; ++s) u += U_smem[(s * BM + row) * U_LD + c];
      O_smem[row * LD + c] = __float2half(u * inv_l);
    }
  }
  __syncwarp();  // the rows are whole before other lanes store them, 16 bytes a lane
#pragma unroll
  for (int i = lane_id; i < ROWS_PER_WARP * CHUNKS; i += 32) {
    const int row = first_row + i / CHUNKS, col = i % CHUNKS * VEC;
    if (!STAGE_BUILD && q0 + row < len_q)
      *reinterpret_cast<uint4*>(O + (size_t)(q0 + row) * D + col) =
          *reinterpret_cast<const uint4*>(O_smem + row * LD + col);
  }
}

template <int D>
int launch_flashcore_wmma(const void* q, const void* k, const void* v, void* o, int batch, int heads,
                          int len_q, int len_kv, float scale, int causal, void* stream) {
  return LAUNCH(flashcore_wmma<D>, dim3((len_q + BM - 1) / BM, heads, batch), dim3(THREADS), SMEM<D>, stream,
                (const __half*)q, (const __half*)k, (const __half*)v, (__half*)o, len_q, len_kv, scale,
                causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64)
    return launch_flashcore_wmma<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128)
    return launch_flashcore_wmma<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
