// v2f: a producer warpgroup that gives its registers away, and softmax under P V.
//
// What changed against v2e:
//   The producer is a warpgroup of its own. setmaxnreg takes its registers down to 24 a thread, and the
//     consumers' up to 240: together what the launch gave to 3 x 128 threads of 168.
//   S of tile t is issued before P V of tile t - 1, and the softmax of tile t runs while that is under way. P
//     of tile t is packed, and O rescaled, once it has ended.
//   The budget of shared memory is Hopper's own, 227 KB: 128 keys a tile at d=128 too.
// Why it should help: in v2e tensor cores wait for the exponentials of their warpgroup, and those for them;
//   at d=64 both take the same number of clocks. Registers are what S, P and O of two tiles need at once.
// Source: Shah et al., "FlashAttention-3" (arXiv 2407.08608), section 3.2 (pipelining within a warpgroup) and
//   3.1 (warp specialisation); PTX ISA, "setmaxnreg".
// Limits: as v2e. One block an SM. The two warpgroups are not made to take turns (ping-pong): they drift.
// Known failures: none. Planted ones (planted.toml): BUG_V2F_..., of products of two tiles in flight.
#include "hopper.cuh"

#define BUG_V2F_SETMAXNREG 70     // the consumers claim more registers than the producer has released: a hang
#define BUG_V2F_CORRECT_EARLY 71  // O is rescaled while P V of the last tile still adds to it
#define BUG_V2F_PACK_EARLY 72     // P is overwritten while P V of the last tile still reads it
#define BUG_V2F_WAIT_TWO 73       // two groups may be left in flight where one may
#define BUG_V2F_RELEASE_V 74      // V is released while P V still reads it

#ifndef STAGES
#define STAGES 2
#endif
static_assert(STAGES >= 2, "one tile is read while another is loaded");

constexpr int GROUPS = 2;                       // consumer warpgroups
constexpr int CONSUMERS = GROUPS * WARPGROUP;   // threads
constexpr int THREADS = CONSUMERS + WARPGROUP;  // and the producer
// Registers a thread: 24 + 2 * 240 is 3 * 168, what 65,536 of them leave to 384 threads.
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = BUG == BUG_V2F_SETMAXNREG ? 248 : 240;
constexpr int BM = GROUPS * 64;  // rows a block: 64 is the M of a wgmma
template <int D>
constexpr int BN = 128;  // keys a tile
constexpr int SUB = 64;  // columns of a sub-tile: 128 bytes, which the swizzle spans
constexpr float UNSCALED_M_START = M_START / 65536;  // see v2d.cu
constexpr float LOG2E = 1.4426950408889634f;

template <int D>
struct Tiles {  // in shared memory; every tile is D / SUB sub-tiles [rows][SUB], one after another
  static constexpr int Q_BYTES = BM * D * 2;
  static constexpr int KV_BYTES = BN<D> * D * 2;
  static constexpr int Q = 0;                      // and O on the way out
  static constexpr int K = Q + Q_BYTES;            // [STAGES]
  static constexpr int V = K + STAGES * KV_BYTES;  // [STAGES]
  static constexpr int BARRIERS = V + STAGES * KV_BYTES;
  static constexpr size_t BYTES = BARRIERS + (1 + 4 * STAGES) * sizeof(uint64_t);
};

template <int D>
__global__ void __launch_bounds__(THREADS, 1)
    v2f(const __grid_constant__ TensorMap q_map,  // [batch * heads][len_q][D], boxes [64][SUB]
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
      mbarrier_init(full_k + s, 1);
      mbarrier_init(full_v + s, 1);
      mbarrier_init(empty_k + s, CONSUMERS / 32);
      mbarrier_init(empty_v + s, CONSUMERS / 32);  // an arrival a warp
    }
    fence_mbarrier_init();
  }
  __syncthreads();  // the mbarriers are ready before anyone uses them

  if (warp_id >= CONSUMERS / 32) {
    // --- load Q, K, V: one thread starts every copy
    registers_release<PRODUCER_REGISTERS>();
    if (threadIdx.x != CONSUMERS) return;
    mbarrier_arrive_expect_tx(full_q, T::Q_BYTES);
    for (int g = 0; g < GROUPS; ++g)
      for (int c = 0; c < D / SUB; ++c)
        tma_load(smem + T::Q + c * BM * 128 + g * 64 * 128, &q_map, full_q, c * SUB, q0 + g * 64, head);
    for (int t = 0; t < tiles; ++t) {
      const int stage = t % STAGES, round = t / STAGES;
      unsigned char* const K_smem = smem + T::K + stage * T::KV_BYTES;
      unsigned char* const V_smem = smem + T::V + stage * T::KV_BYTES;
      if (round > 0) mbarrier_wait(empty_k + stage, (round - 1) & 1);
      mbarrier_arrive_expect_tx(full_k + stage, T::KV_BYTES);
      for (int c = 0; c < D / SUB; ++c)
        tma_load(K_smem + c * BN * 128, &k_map, full_k + stage, c * SUB, t * BN, head);
      if (round > 0) mbarrier_wait(empty_v + stage, (round - 1) & 1);
      mbarrier_arrive_expect_tx(full_v + stage, T::KV_BYTES);
      for (int c = 0; c < D / SUB; ++c)
        // caught here: BUG_V2F_RELEASE_V race
        tma_load(V_smem + c * BN * 128, &v_map, full_v + stage, c * SUB, t * BN, head);
    }
    return;
  }

  // caught here: BUG_V2F_SETMAXNREG deadlock
  registers_claim<CONSUMER_REGISTERS>();
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

  // K-major: 8 rows of 128 bytes are 1024; the leading offset is not read. N-major: 8 keys are 1024 bytes,
  // and the next SUB columns lie a sub-tile further.
  const uint64_t Q_desc =
      matrix_descriptor(shared_address(smem + T::Q + group * 64 * 128), 16, 1024, SWIZZLE_128B);
  const uint64_t K_desc = matrix_descriptor(shared_address(smem + T::K), 16, 1024, SWIZZLE_128B);
  const uint64_t V_desc = matrix_descriptor(shared_address(smem + T::V), BN * 128, 1024, SWIZZLE_128B);

  float S_rmem[BN / 2];  // [64][BN]: of 8 columns, row: 0, 1; row + 8: 2, 3
  uint32_t P_rmem[BN / 16][4];
  float O_rmem[D / 2] = {};  // [64][D], laid out as S_rmem
  float m_rmem[2] = {UNSCALED_M_START, UNSCALED_M_START};
  float l_rmem[2] = {0.f, 0.f};  // of this lane's columns; the row's four lanes are added at the end

  float correction[2];  // of the rows' last maximum to this one

  // --- scores S = Q K^T, of tile t
  auto issue_scores = [&](int t) {
    const uint64_t stage_off = descriptor_field(t % STAGES * T::KV_BYTES);
    mbarrier_wait(full_k + t % STAGES, t / STAGES & 1);
    wgmma_fence(S_rmem);  // the last softmax is done with S
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {  // 16 columns are 32 bytes of a row, 4 of them a sub-tile's
      const uint64_t in_row = descriptor_field(k % 4 * 32);
      wgmma_m64k16<0>(S_rmem, Q_desc + in_row + descriptor_field(k / 4 * BM * 128),
                      K_desc + stage_off + in_row + descriptor_field(k / 4 * BN * 128), k != 0);
    }
    wgmma_commit();
  };
  // --- O += P V, of tile t
  auto issue_output = [&](int t) {
    const uint64_t stage_off = descriptor_field(t % STAGES * T::KV_BYTES);
    mbarrier_wait(full_v + t % STAGES, t / STAGES & 1);
    wgmma_fence(P_rmem, O_rmem);
#pragma unroll
    for (int k = 0; k < BN / 16; ++k)  // 16 keys are 2048 bytes
      wgmma_m64k16<1>(O_rmem, P_rmem[k], V_desc + stage_off + descriptor_field(k * 2048), 1);
    wgmma_commit();
  };
  auto softmax = [&](int t) {
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
      // caught here: BUG_V2F_WAIT_TWO wgmma-not-waited
      for (int n = h * 2; n < BN / 2; n += 4) m_new = fmaxf(m_new, fmaxf(S_rmem[n], S_rmem[n + 1]));
      m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, 1));  // a row's four lanes are neighbours
      m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, 2));
      const float base = m_new * scale_log2;
      // The difference first: 0 where the maximum stays (see v2d.cu).
      correction[h] = exp2_approx((m_rmem[h] - m_new) * scale_log2);
      m_rmem[h] = m_new;
      l_rmem[h] *= correction[h];
      for (int i = 0; i < 2; ++i)
        stage_rescale(stage_rows[h], col + i, 8, min(t * BN, len_kv), correction[h]);
#pragma unroll
      for (int n = h * 2; n < BN / 2; n += 4)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float p = exp2_approx(S_rmem[n + i] * scale_log2 - base);
          stage_store<ONLY_SOFTMAX>(stage_rows[h], t * BN + n / 4 * 8 + col + i, len_kv, p);
          S_rmem[n + i] = p;  // from here on it is P
          l_rmem[h] += p;
        }
    }
  };
  auto rescale = [&] {
#pragma unroll
    // caught here: BUG_V2F_CORRECT_EARLY wgmma-not-waited
    for (int d = 0; d < D / 2; ++d) O_rmem[d] *= correction[d / 2 % 2];
  };
  auto pack = [&] {  // 16 keys of the accumulator are one A fragment as they lie
#pragma unroll
    for (int k = 0; k < BN / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        // caught here: BUG_V2F_PACK_EARLY wgmma-not-waited
        P_rmem[k][i] = pack_half2(S_rmem[k * 8 + i * 2], S_rmem[k * 8 + i * 2 + 1]);
  };

  mbarrier_wait(full_q, 0);
  if (tiles > 0) {
    issue_scores(0);
    wgmma_wait<0>(S_rmem);
    if (lane_id == 0) mbarrier_arrive(empty_k);
    softmax(0);  // O is 0: there is nothing to rescale
    pack();
    for (int t = 1; t < tiles; ++t) {
      issue_scores(t);
      issue_output(t - 1);
      constexpr int IN_FLIGHT = BUG == BUG_V2F_WAIT_TWO ? 2 : 1;
      wgmma_wait<IN_FLIGHT>(S_rmem);  // S is there, and P V goes on
      if (lane_id == 0) mbarrier_arrive(empty_k + t % STAGES);
      if (BUG == BUG_V2F_RELEASE_V && lane_id == 0) mbarrier_arrive(empty_v + (t - 1) % STAGES);
      softmax(t);
      if (BUG == BUG_V2F_CORRECT_EARLY) rescale();
      if (BUG == BUG_V2F_PACK_EARLY) pack();
      wgmma_wait<0>(P_rmem, O_rmem);
      if (BUG != BUG_V2F_RELEASE_V && lane_id == 0) mbarrier_arrive(empty_v + (t - 1) % STAGES);
      if (BUG != BUG_V2F_CORRECT_EARLY) rescale();
      if (BUG != BUG_V2F_PACK_EARLY) pack();
    }
    issue_output(tiles - 1);
    wgmma_wait<0>(P_rmem, O_rmem);
  }

  // --- normalise and store O: to the place of this warpgroup's Q, swizzled as its map says, then by TMA
  auto group_barrier = [&] {  // the ids are known when compiling: see named_barrier_sync
    group == 0 ? named_barrier_sync(1, WARPGROUP) : named_barrier_sync(2, WARPGROUP);
  };
  group_barrier();  // all four warps are done with Q
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
  fence_proxy_async();  // every writer: threads wrote, and TMA will read
  group_barrier();      // so have the other warps
  if (!STAGE_BUILD && threadIdx.x % WARPGROUP == 0) {
    for (int c = 0; c < D / SUB; ++c) tma_store(&o_map, O_smem + c * BM * 128, c * SUB, first_row, head);
    tma_store_commit();
    tma_store_wait_read();  // the block's memory lasts as long as the block
  }
}

template <int D>
int launch_v2f(const void* q, const void* k, const void* v, void* o, int batch, int heads, int len_q,
               int len_kv, float scale, int causal, void* stream) {
  if (const int refused = refused_here(v2f<D>)) return refused;
  TensorMap q_map, k_map, v_map, o_map;
  int error = make_tensor_map(&q_map, q, D, len_q, batch * heads, SUB, 64);
  if (!error) error = make_tensor_map(&k_map, k, D, len_kv, batch * heads, SUB, BN<D>);
  if (!error) error = make_tensor_map(&v_map, v, D, len_kv, batch * heads, SUB, BN<D>);
  if (!error) error = make_tensor_map(&o_map, o, D, len_q, batch * heads, SUB, 64);
  if (error) return error;
  return LAUNCH(v2f<D>, dim3((len_q + BM - 1) / BM, heads, batch), dim3(THREADS), Tiles<D>::BYTES, stream,
                q_map, k_map, v_map, o_map, o, len_q, len_kv, scale, causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64) return launch_v2f<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128) return launch_v2f<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
