// v2e: wgmma, TMA and mbarrier.
//
// What changed against v2d_c:
//   wgmma: a warpgroup of 128 threads owns 64 rows. S = Q K^T reads both operands from shared memory, and
//     O += P V takes P from the registers it was computed in, and V as it lies. Products run while their
//     threads go on.
//   TMA: one thread of a producer warp starts the copy of a whole box, which arrives swizzled.
//   mbarrier: a full and an empty one for each stage of K and of V, in place of cp.async groups and
//     __syncthreads: nobody waits for more than he needs.
// Why it should help: wgmma reaches the full rate of Hopper's tensor cores, mma.sync 60 to 65 % of it;
//   operands of shared memory pass no registers, so that ldmatrix and a third of the instructions are gone;
//   no thread computes addresses of copies.
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate", "cp.async.bulk.tensor",
//   "mbarrier"; Shah et al., "FlashAttention-3" (arXiv 2407.08608), section 3.1 without its overlap.
// Limits: sm_90a alone: another GPU is refused. Scale as v2d. Two stages of 128 keys at d=64 and of 64 at
//   d=128 keep to 99 KB, so that its neighbours are compared under the same budget; d=128 would take 128
//   keys. Products and softmax of a warpgroup take turns (v2f). Blocks of 128 rows: few for small problems
//   (v2g).
// Known failures: none. Planted ones (planted.toml): BUG_V2E_..., mistakes that people make with these
//   instructions. Of those marked *, numbers are right in every schedule of the CPU check.
#include "hopper.cuh"

#define BUG_V2E_NO_FULL_WAIT 40      // K is read with no wait for its load
#define BUG_V2E_PARITY 41            // the consumers wait for the phase before
#define BUG_V2E_NO_EMPTY_WAIT 42     // the producer overwrites a stage that is still read
#define BUG_V2E_EARLY_RELEASE 43     // a stage is released before the products that read it have ended
#define BUG_V2E_NO_WGMMA_FENCE 44    // * registers are written and then read by wgmma, with no fence between
#define BUG_V2E_NO_WGMMA_WAIT 45     // S is read while wgmma still writes it
#define BUG_V2E_NO_PROXY_FENCE 46    // * O is written by threads and read by TMA, with no proxy fence
#define BUG_V2E_EXPECT_MORE 47       // more bytes are expected than come
#define BUG_V2E_EXPECT_FEWER 48      // fewer bytes are expected than come
#define BUG_V2E_STRIDE 49            // V's rows are said to lie as a 64-byte swizzle has them
#define BUG_V2E_V_KMAJOR 50          // V is said to lie K-major
#define BUG_V2E_SWIZZLE_MODE 51      // the descriptors say 64-byte swizzle, the tensor maps 128
#define BUG_V2E_ARRIVE_COUNT 52      // a stage expects an arrival a warpgroup, and every warp arrives
#define BUG_V2E_NO_STORE_WAIT 53     // the block ends while TMA still reads its shared memory
#define BUG_V2E_NO_INIT_FENCE 54     // * the mbarriers' start is not made visible to the async proxy
#define BUG_V2E_NAMED_COUNT 55       // a barrier of one warpgroup waits for both
#define BUG_V2E_NO_NAMED_BARRIER 56  // one thread stores the rows of four warps, with no barrier between
#define BUG_V2E_MISALIGNED_TILE 57   // tiles 128 bytes off the 1024 that the swizzle's pattern starts at
#define BUG_V2E_ONE_LANE_WAITS 58    // * one lane of a warp waits for K, and all of them read it

#ifndef STAGES
#define STAGES 2
#endif
static_assert(STAGES >= 2, "one tile is read while another is loaded");

constexpr int GROUPS = 2;                      // consumer warpgroups
constexpr int CONSUMERS = GROUPS * WARPGROUP;  // threads
constexpr int THREADS = CONSUMERS + 32;        // and the producer warp
constexpr int BM = GROUPS * 64;                // rows a block: 64 is the M of a wgmma
template <int D>
constexpr int BN = D == 64 ? 128 : 64;  // keys a tile
constexpr int SUB = 64;                 // columns of a sub-tile: 128 bytes, which the swizzle spans
constexpr float UNSCALED_M_START = M_START / 65536;  // see v2d.cu
constexpr float LOG2E = 1.4426950408889634f;

template <int D>
struct Tiles {  // in shared memory; every tile is D / SUB sub-tiles [rows][SUB], one after another
  static constexpr int Q_BYTES = BM * D * 2;
  static constexpr int KV_BYTES = BN<D> * D * 2;
  static constexpr int Q = BUG == BUG_V2E_MISALIGNED_TILE ? 128 : 0;  // and O on the way out
  static constexpr int K = Q + Q_BYTES;                               // [STAGES]
  static constexpr int V = K + STAGES * KV_BYTES;                     // [STAGES]
  static constexpr int BARRIERS = V + STAGES * KV_BYTES;
  static constexpr size_t BYTES = BARRIERS + (1 + 4 * STAGES) * sizeof(uint64_t);
};

template <int D>
__global__ void __launch_bounds__(THREADS, 1)
    v2e(const __grid_constant__ TensorMap q_map,  // [batch * heads][len_q][D], boxes [64][SUB]
        const __grid_constant__ TensorMap k_map,  // [batch * heads][len_kv][D], boxes [BN][SUB]
        const __grid_constant__ TensorMap v_map,  // [batch * heads][len_kv][D], boxes [BN][SUB]
        const __grid_constant__ TensorMap o_map,  // [batch * heads][len_q][D], boxes [64][SUB]
        void* stage_out,                          // ONLY builds
        int len_q, int len_kv, float scale, int causal) {
  constexpr int BN = ::BN<D>;
  using T = Tiles<D>;
  TILE_SMEM(smem);
  uint64_t* const full_q = reinterpret_cast<uint64_t*>(smem + T::BARRIERS);
  uint64_t* const full_k = full_q + 1;         // [STAGES]: the tile has landed
  uint64_t* const full_v = full_k + STAGES;    // [STAGES]
  uint64_t* const empty_k = full_v + STAGES;   // [STAGES]: nobody reads it any more
  uint64_t* const empty_v = empty_k + STAGES;  // [STAGES]
  const int warp_id = threadIdx.x / 32, lane_id = threadIdx.x % 32;
  const int q0 = blockIdx.x * BM;  // the block's first row
  const int head = (int)head_of_block();
  const int kv_end = keys_to_visit(min(q0 + BM, len_q) - 1, len_q, len_kv, causal);
  const int tiles = (kv_end + BN - 1) / BN;

  if (threadIdx.x == 0) {
    mbarrier_init(full_q, 1);
    for (int s = 0; s < STAGES; ++s) {
      constexpr int RELEASES = BUG == BUG_V2E_ARRIVE_COUNT ? GROUPS : CONSUMERS / 32;  // an arrival a warp
      mbarrier_init(full_k + s, 1);
      mbarrier_init(full_v + s, 1);
      mbarrier_init(empty_k + s, RELEASES);
      mbarrier_init(empty_v + s, RELEASES);
    }
    if (BUG != BUG_V2E_NO_INIT_FENCE) fence_mbarrier_init();
  }
  __syncthreads();  // the mbarriers are ready before anyone uses them

  if (warp_id == CONSUMERS / 32) {
    // --- load Q, K, V: one thread starts every copy
    if (lane_id != 0) return;
    mbarrier_arrive_expect_tx(full_q, T::Q_BYTES);
    for (int g = 0; g < GROUPS; ++g)
      for (int c = 0; c < D / SUB; ++c)
        // caught here: BUG_V2E_NO_INIT_FENCE proxy-fence-missing
        tma_load(smem + T::Q + c * BM * 128 + g * 64 * 128, &q_map, full_q, c * SUB, q0 + g * 64, head);
    for (int t = 0; t < tiles; ++t) {
      constexpr int WRONG_BYTES = BUG == BUG_V2E_EXPECT_MORE ? 16 : BUG == BUG_V2E_EXPECT_FEWER ? -1024 : 0;
      const int stage = t % STAGES, round = t / STAGES;
      unsigned char* const K_smem = smem + T::K + stage * T::KV_BYTES;
      unsigned char* const V_smem = smem + T::V + stage * T::KV_BYTES;
      if (BUG != BUG_V2E_NO_EMPTY_WAIT && round > 0) mbarrier_wait(empty_k + stage, (round - 1) & 1);
      mbarrier_arrive_expect_tx(full_k + stage, T::KV_BYTES + WRONG_BYTES);
      for (int c = 0; c < D / SUB; ++c)
        // caught here: BUG_V2E_NO_EMPTY_WAIT async-not-waited; BUG_V2E_EARLY_RELEASE async-not-waited race
        // caught here: BUG_V2E_EXPECT_FEWER expect-tx-mismatch
        tma_load(K_smem + c * BN * 128, &k_map, full_k + stage, c * SUB, t * BN, head);
      if (round > 0) mbarrier_wait(empty_v + stage, (round - 1) & 1);
      mbarrier_arrive_expect_tx(full_v + stage, T::KV_BYTES);
      for (int c = 0; c < D / SUB; ++c)
        tma_load(V_smem + c * BN * 128, &v_map, full_v + stage, c * SUB, t * BN, head);
    }
    return;
  }

  const int group = warp_id / 4;                   // 64 rows each
  const int row = warp_id % 4 * 16 + lane_id / 4;  // a lane holds parts of this row and of the one 8 below
  const int col = lane_id % 4 * 2;                 // of every 8 columns it holds this one and the next
  const int first_row = q0 + group * 64;
  const float scale_log2 = scale * LOG2E;
  int visible[2];
  float* stage_rows[2];  // [len_kv] each
  for (int h = 0; h < 2; ++h) {
    visible[h] = visible_keys(first_row + row + h * 8, len_q, len_kv, causal);
    stage_rows[h] = stage_row(stage_out, first_row + row + h * 8, len_q, len_kv);
  }
  const int seen_by_all = visible_keys(first_row, len_q, len_kv, causal);  // by every row of the warpgroup

  constexpr Swizzle MODE = BUG == BUG_V2E_SWIZZLE_MODE ? SWIZZLE_64B : SWIZZLE_128B;
  constexpr int V_STRIDE = BUG == BUG_V2E_STRIDE ? 512 : 1024, V_TRANS = BUG == BUG_V2E_V_KMAJOR ? 0 : 1;
  // K-major: 8 rows of 128 bytes are 1024; the leading offset is not read. N-major: 8 keys are 1024 bytes,
  // and the next SUB columns lie a sub-tile further.
  const uint64_t Q_desc = matrix_descriptor(shared_address(smem + T::Q + group * 64 * 128), 16, 1024, MODE);
  const uint64_t K_desc = matrix_descriptor(shared_address(smem + T::K), 16, 1024, MODE);
  const uint64_t V_desc = matrix_descriptor(shared_address(smem + T::V), BN * 128, V_STRIDE, MODE);

  float S_rmem[BN / 2];  // [64][BN]: of 8 columns, row: 0, 1; row + 8: 2, 3
  uint32_t P_rmem[BN / 16][4];
  float O_rmem[D / 2] = {};  // [64][D], laid out as S_rmem
  float m_rmem[2] = {UNSCALED_M_START, UNSCALED_M_START};
  float l_rmem[2] = {0.f, 0.f};  // of this lane's columns; the row's four lanes are added at the end

  mbarrier_wait(full_q, 0);
  for (int t = 0; t < tiles; ++t) {
    const int stage = t % STAGES, parity = t / STAGES & 1;
    const uint64_t stage_off = descriptor_field(stage * T::KV_BYTES);

    // --- scores S = Q K^T
    constexpr int WRONG_PHASE = BUG == BUG_V2E_PARITY;
    const bool waits = BUG == BUG_V2E_NO_FULL_WAIT     ? false
                       : BUG == BUG_V2E_ONE_LANE_WAITS ? lane_id == 0
                                                       : true;
    // caught here: BUG_V2E_PARITY deadlock; BUG_V2E_EXPECT_MORE deadlock; BUG_V2E_EXPECT_FEWER deadlock
    if (waits) mbarrier_wait(full_k + stage, parity ^ WRONG_PHASE);
    wgmma_fence(S_rmem);  // the last softmax is done with S
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {  // 16 columns are 32 bytes of a row, 4 of them a sub-tile's
      const uint64_t in_row = descriptor_field(k % 4 * 32);
      // caught here: BUG_V2E_NO_FULL_WAIT async-not-waited; BUG_V2E_ONE_LANE_WAITS async-not-waited
      // caught here: BUG_V2E_PARITY async-not-waited; BUG_V2E_MISALIGNED_TILE misaligned
      wgmma_m64k16<0>(S_rmem, Q_desc + in_row + descriptor_field(k / 4 * BM * 128),
                      K_desc + stage_off + in_row + descriptor_field(k / 4 * BN * 128), k != 0);
    }
    wgmma_commit();
    if (BUG == BUG_V2E_EARLY_RELEASE && lane_id == 0) mbarrier_arrive(empty_k + stage);
    if (BUG != BUG_V2E_NO_WGMMA_WAIT) wgmma_wait<0>(S_rmem);
    // caught here: BUG_V2E_ARRIVE_COUNT mbarrier-misuse
    if (BUG != BUG_V2E_EARLY_RELEASE && lane_id == 0) mbarrier_arrive(empty_k + stage);

    // --- mask
    if (ONLY != ONLY_ALL || (t + 1) * BN > seen_by_all)  // only at the diagonal and at the end
#pragma unroll
      for (int i = 0; i < BN / 2; ++i) {
        const int key = t * BN + i / 4 * 8 + col + i % 2;
        S_rmem[i] = mask_score(S_rmem[i], key, visible[i / 2 % 2]);
        stage_store<ONLY_QK>(stage_rows[i / 2 % 2], key, len_kv, S_rmem[i] * scale);
      }

    // --- online softmax
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float m_new = m_rmem[h];  // of the scores before they are scaled
#pragma unroll
      // caught here: BUG_V2E_NO_WGMMA_WAIT wgmma-not-waited
      for (int n = h * 2; n < BN / 2; n += 4) m_new = fmaxf(m_new, fmaxf(S_rmem[n], S_rmem[n + 1]));
      m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, 1));  // a row's four lanes are neighbours
      m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, 2));
      const float base = m_new * scale_log2;
      // The difference first: 0 where the maximum stays (see v2d.cu).
      const float correction = exp2_approx((m_rmem[h] - m_new) * scale_log2);
      m_rmem[h] = m_new;
      l_rmem[h] *= correction;
      for (int i = 0; i < 2; ++i) stage_rescale(stage_rows[h], col + i, 8, min(t * BN, len_kv), correction);
#pragma unroll
      for (int n = h * 2; n < BN / 2; n += 4)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float p = exp2_approx(S_rmem[n + i] * scale_log2 - base);
          stage_store<ONLY_SOFTMAX>(stage_rows[h], t * BN + n / 4 * 8 + col + i, len_kv, p);
          S_rmem[n + i] = p;  // from here on it is P
          l_rmem[h] += p;
        }
#pragma unroll
      for (int d = h * 2; d < D / 2; d += 4) {
        O_rmem[d] *= correction;
        O_rmem[d + 1] *= correction;
      }
    }

    // --- O += P V
#pragma unroll
    for (int k = 0; k < BN / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)  // 16 keys of the accumulator are one A fragment as they lie
        P_rmem[k][i] = pack_half2(S_rmem[k * 8 + i * 2], S_rmem[k * 8 + i * 2 + 1]);
    mbarrier_wait(full_v + stage, parity);
    if (BUG != BUG_V2E_NO_WGMMA_FENCE) wgmma_fence(P_rmem, O_rmem);
#pragma unroll
    for (int k = 0; k < BN / 16; ++k)  // 16 keys are 2048 bytes
      // caught here: BUG_V2E_NO_WGMMA_FENCE wgmma-fence-missing; BUG_V2E_V_KMAJOR out-of-bounds-shared
      wgmma_m64k16<V_TRANS>(O_rmem, P_rmem[k], V_desc + stage_off + descriptor_field(k * 2048), 1);
    wgmma_commit();
    wgmma_wait<0>(P_rmem, O_rmem);
    if (lane_id == 0) mbarrier_arrive(empty_v + stage);
  }

  // --- normalise and store O: to the place of this warpgroup's Q, swizzled as its map says, then by TMA
  auto group_barrier = [&](int threads) {  // the ids are known when compiling: see named_barrier_sync
    // caught here: BUG_V2E_NAMED_COUNT deadlock
    group == 0 ? named_barrier_sync(1, threads) : named_barrier_sync(2, threads);
  };
  // All four warps are done with Q.
  group_barrier(BUG == BUG_V2E_NAMED_COUNT ? CONSUMERS + 32 : WARPGROUP);
  unsigned char* const O_smem = smem + T::Q + group * 64 * 128;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float l = l_rmem[h];
    l += __shfl_xor_sync(FULL_WARP, l, 1);
    l += __shfl_xor_sync(FULL_WARP, l, 2);
    const float inv_l = l > 0.f ? __fdividef(1.f, l) : 0.f;  // a row that sees no key gives 0
    for (int i = 0; i < 2; ++i) stage_rescale(stage_rows[h], col + i, 8, len_kv, inv_l);
#pragma unroll
    for (int d = 0; d < D / 8; ++d)
      *reinterpret_cast<uint32_t*>(O_smem + d / 8 * BM * 128 +
                                   swizzle_128b((row + h * 8) * 128 + d % 8 * 16 + col * 2)) =
          pack_half2(O_rmem[d * 4 + h * 2] * inv_l, O_rmem[d * 4 + h * 2 + 1] * inv_l);
  }
  if (BUG != BUG_V2E_NO_PROXY_FENCE) fence_proxy_async();  // every writer: threads wrote, and TMA will read
  if (BUG != BUG_V2E_NO_NAMED_BARRIER) group_barrier(WARPGROUP);  // so have the other warps
  if (!STAGE_BUILD && threadIdx.x % WARPGROUP == 0) {
    for (int c = 0; c < D / SUB; ++c)
      // caught here: BUG_V2E_NO_PROXY_FENCE proxy-fence-missing; BUG_V2E_NO_NAMED_BARRIER race
      // caught here: BUG_V2E_NO_STORE_WAIT async-left-pending
      tma_store(&o_map, O_smem + c * BM * 128, c * SUB, first_row, head);
    tma_store_commit();
    if (BUG != BUG_V2E_NO_STORE_WAIT) tma_store_wait_read();  // the block's memory lasts as long as the block
  }
}

template <int D>
int launch_v2e(const void* q, const void* k, const void* v, void* o, int batch, int heads, int len_q,
               int len_kv, float scale, int causal, void* stream) {
  if (const int refused = refused_here(v2e<D>)) return refused;
  TensorMap q_map, k_map, v_map, o_map;
  int error = make_tensor_map(&q_map, q, D, len_q, batch * heads, SUB, 64);
  if (!error) error = make_tensor_map(&k_map, k, D, len_kv, batch * heads, SUB, BN<D>);
  if (!error) error = make_tensor_map(&v_map, v, D, len_kv, batch * heads, SUB, BN<D>);
  if (!error) error = make_tensor_map(&o_map, o, D, len_q, batch * heads, SUB, 64);
  if (error) return error;
  return LAUNCH(v2e<D>, dim3((len_q + BM - 1) / BM, heads, batch), dim3(THREADS), Tiles<D>::BYTES, stream,
                q_map, k_map, v_map, o_map, o, len_q, len_kv, scale, causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64) return launch_v2e<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128) return launch_v2e<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
