// v2g: the keys split over a cluster of blocks, merged through distributed shared memory.
//
// What changed against v2f:
//   Two blocks of a cluster share 64 rows: each has half of the keys, and of these each of its two warpgroups
//     every second chunk of 64. Four partial O with their m and l are then merged without a second kernel:
//     each block finishes half of the rows, and is sent the other partials of these through its mbarrier.
//   All chunks of a pass are loaded at once, each with an mbarrier of its own: nobody waits for an empty
//     stage, and there is no producer. 256 keys a block are one pass, 512 keys of a problem.
//   MULTICAST=1: four blocks are a cluster, two tiles of rows by two halves of keys. Blocks with the same
//     keys load half of each chunk for both.
// Why it should help: at 1x8x512x64 v2f has 32 blocks for 132 SMs, and this 128: a block computes a quarter
//   as long. Multicast halves what comes from L2, 9.4 MB otherwise, which may be as long as the arithmetic.
// Source: Dao et al., "Flash-Decoding" (splitting keys and merging by m and l); PTX ISA, "st.async",
//   "barrier.cluster", "mapa", ".multicast::cluster".
// Limits: as v2e. For few rows: each row is merged from four partials. A pass is not loaded while the one
//   before is computed, so that problems of more than 512 keys wait between passes. No ONLY=SOFTMAX build:
//   nobody rescales P by what another block has seen.
//   No barrier ends the cluster: a block's last wait is for all that is sent to it, and nobody reads its
//   memory.
// Known failures: none. Planted ones (planted.toml): BUG_V2G_..., of clusters.
#include "hopper.cuh"

#define BUG_V2G_NO_START_BARRIER 90  // partials are sent to a block that may not have started
#define BUG_V2G_NO_INBOX_WAIT 91     // a block does not wait for what it is sent, and ends
#define BUG_V2G_RELAXED_PASS 92      // between passes the blocks of a cluster meet, and order nothing
#define BUG_V2G_OWN_RANK 93          // partials are sent to the block that they come from
#define BUG_V2G_L_NOT_RESCALED 94    // the sums of the others' exponentials keep their own maximum
#define BUG_V2G_O_NOT_RESCALED 95    // so do their rows of O
#define BUG_V2G_EXPECT_ONE 96        // the bytes of one partial are waited for, and three come

#ifndef MULTICAST
#define MULTICAST 0
#endif
constexpr int GROUPS = 2;  // warpgroups, by keys
constexpr int THREADS = GROUPS * WARPGROUP;
constexpr int KEY_BLOCKS = 2;                  // of a cluster, by keys
constexpr int ROW_BLOCKS = MULTICAST ? 2 : 1;  // and by rows
constexpr int CLUSTER = KEY_BLOCKS * ROW_BLOCKS;
constexpr int BM = 64;                          // rows a block: the M of a wgmma
constexpr int CHUNK = 64;                       // keys
constexpr int CHUNKS = 4;                       // of a pass
constexpr int BOX = CHUNK / ROW_BLOCKS;         // keys of a chunk that a block loads
constexpr int SUB = 64;                         // columns of a sub-tile: 128 bytes, which the swizzle spans
constexpr int SLOTS = KEY_BLOCKS * GROUPS - 1;  // partials that are sent to whoever finishes a row
constexpr float UNSCALED_M_START = M_START / 65536;  // see v2d.cu
constexpr float LOG2E = 1.4426950408889634f;

template <int D>
struct Tiles {  // in shared memory; every tile is D / SUB sub-tiles [rows][SUB], one after another
  static constexpr int Q_BYTES = BM * D * 2;
  static constexpr int KV_BYTES = CHUNK * D * 2;
  static constexpr int O_BYTES = 16 * D * 2;                // of a warp, on its way out
  static constexpr int PART_BYTES = (D / 8 + 1) * 32 * 16;  // O, m and l of a warp, 16 bytes a lane at a time
  static constexpr int Q = 0;
  static constexpr int K = Q + Q_BYTES;            // [CHUNKS]
  static constexpr int V = K + CHUNKS * KV_BYTES;  // [CHUNKS]
  static constexpr int O = V + CHUNKS * KV_BYTES;  // [2], of the warps that finish rows
  static constexpr int INBOX = O + 2 * O_BYTES;    // [SLOTS][2]
  static constexpr int BARRIERS = INBOX + SLOTS * 2 * PART_BYTES;
  static constexpr size_t BYTES = BARRIERS + (2 + 2 * CHUNKS) * sizeof(uint64_t);
};

template <int D>
__global__ void __launch_bounds__(THREADS, 1)
    v2g(const __grid_constant__ TensorMap q_map,  // [batch * heads][len_q][D], boxes [BM][SUB]
        const __grid_constant__ TensorMap k_map,  // [batch * heads][len_kv][D], boxes [BOX][SUB]
        const __grid_constant__ TensorMap v_map,  // [batch * heads][len_kv][D], boxes [BOX][SUB]
        const __grid_constant__ TensorMap o_map,  // [batch * heads][len_q][D], boxes [16][SUB]
        void* stage_out,                          // ONLY builds
        int len_q, int len_kv, float scale, int causal) {
  using T = Tiles<D>;
  TILE_SMEM(smem);
  uint64_t* const full_q = reinterpret_cast<uint64_t*>(smem + T::BARRIERS);
  uint64_t* const inbox = full_q + 1;        // the partials of the others are here
  uint64_t* const full_k = inbox + 1;        // [CHUNKS]: the chunk has landed
  uint64_t* const full_v = full_k + CHUNKS;  // [CHUNKS]
  const int warp_id = threadIdx.x / 32, lane_id = threadIdx.x % 32;
  const int rank = cluster_rank(), key_rank = rank % KEY_BLOCKS, row_rank = rank / KEY_BLOCKS;
  const int cluster_q0 = blockIdx.x / CLUSTER * ROW_BLOCKS * BM;  // the cluster's first row
  const int q0 = cluster_q0 + row_rank * BM;                      // the block's
  const int head = (int)head_of_block();
  // Chunks by the cluster's last row: blocks that load for each other have the same.
  const int last_row = min(cluster_q0 + ROW_BLOCKS * BM, len_q) - 1;
  const int chunks = (keys_to_visit(last_row, len_q, len_kv, causal) + CHUNK - 1) / CHUNK;
  const int share = (chunks + KEY_BLOCKS - 1) / KEY_BLOCKS;
  const int first_chunk = key_rank * share;
  const int own_chunks = max(0, min(share, chunks - first_chunk));

  // --- load Q, K, V: one thread starts every copy of a pass
  auto load_pass = [&](int pass) {
    if (threadIdx.x != 0) return;
    if (pass == 0) {
      mbarrier_arrive_expect_tx(full_q, T::Q_BYTES);
      for (int c = 0; c < D / SUB; ++c)
        tma_load(smem + T::Q + c * BM * 128, &q_map, full_q, c * SUB, q0, head);
    }
    auto load_chunk = [&](unsigned char* tile, const TensorMap* map, uint64_t* full, int key) {
      mbarrier_arrive_expect_tx(full, T::KV_BYTES);
      for (int c = 0; c < D / SUB; ++c)
        // This block's half of the rows, for both blocks that have these keys.
        // caught here: BUG_V2G_RELAXED_PASS race
        if (MULTICAST)
          tma_load_multicast(tile + (c * CHUNK + row_rank * BOX) * 128, map, full, c * SUB,
                             key + row_rank * BOX, head, uint16_t((1 | 1 << KEY_BLOCKS) << key_rank));
        else
          tma_load(tile + c * CHUNK * 128, map, full, c * SUB, key, head);
    };
    for (int c = 0; c < min(CHUNKS, own_chunks - pass * CHUNKS); ++c) {
      const int key = (first_chunk + pass * CHUNKS + c) * CHUNK;
      load_chunk(smem + T::K + c * T::KV_BYTES, &k_map, full_k + c, key);
      load_chunk(smem + T::V + c * T::KV_BYTES, &v_map, full_v + c, key);
    }
  };
  if (threadIdx.x == 0) {
    constexpr int PARTIALS = BUG == BUG_V2G_EXPECT_ONE ? 1 : SLOTS;
    mbarrier_init(full_q, 1);
    mbarrier_init(inbox, 1);
    for (int c = 0; c < CHUNKS; ++c) {
      mbarrier_init(full_k + c, 1);
      mbarrier_init(full_v + c, 1);
    }
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(inbox, PARTIALS * 2 * T::PART_BYTES);
  }
  // The mbarriers of all blocks are ready before anyone uses them. What a block loads for itself need not
  //   wait.
  if (BUG != BUG_V2G_NO_START_BARRIER) cluster_arrive_relaxed();
  if (!MULTICAST) load_pass(0);
  if (BUG != BUG_V2G_NO_START_BARRIER)
    cluster_wait();
  else
    __syncthreads();
  if (MULTICAST) load_pass(0);

  const int group = warp_id / 4;                   // every second chunk each
  const int row = warp_id % 4 * 16 + lane_id / 4;  // a lane holds parts of this row and of the one 8 below
  const int col = lane_id % 4 * 2;                 // of every 8 columns it holds this one and the next
  const float scale_log2 = scale * LOG2E;
  int visible[2];
  float* stage_rows[2];  // [len_kv] each
  for (int h = 0; h < 2; ++h) {
    visible[h] = visible_keys(q0 + row + h * 8, len_q, len_kv, causal);
    stage_rows[h] = stage_row(stage_out, q0 + row + h * 8, len_q, len_kv);
  }
  const int seen_by_all = visible_keys(q0, len_q, len_kv, causal);  // by every row of the block
  // K-major: 8 rows of 128 bytes are 1024; the leading offset is not read. N-major: 8 keys are 1024 bytes,
  // and the next SUB columns lie a sub-tile further.
  const uint64_t Q_desc = matrix_descriptor(shared_address(smem + T::Q), 16, 1024, SWIZZLE_128B);
  const uint64_t K_desc = matrix_descriptor(shared_address(smem + T::K), 16, 1024, SWIZZLE_128B);
  const uint64_t V_desc = matrix_descriptor(shared_address(smem + T::V), CHUNK * 128, 1024, SWIZZLE_128B);

  float S_rmem[CHUNK / 2];  // [64][CHUNK]: of 8 columns, row: 0, 1; row + 8: 2, 3
  uint32_t P_rmem[CHUNK / 16][4];
  float O_rmem[D / 2] = {};  // [64][D], laid out as S_rmem
  float m_rmem[2] = {UNSCALED_M_START, UNSCALED_M_START};
  float l_rmem[2] = {0.f, 0.f};  // of this lane's columns; the row's four lanes are added at the end
  float correction[2];           // of the rows' last maximum to this one

  // --- scores S = Q K^T, of a pass's chunk
  auto issue_scores = [&](int chunk, int parity) {
    const uint64_t chunk_off = descriptor_field(chunk * T::KV_BYTES);
    mbarrier_wait(full_k + chunk, parity);
    wgmma_fence(S_rmem);  // the last softmax is done with S
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {  // 16 columns are 32 bytes of a row, 4 of them a sub-tile's
      const uint64_t in_row = descriptor_field(k % 4 * 32);
      wgmma_m64k16<0>(S_rmem, Q_desc + in_row + descriptor_field(k / 4 * BM * 128),
                      K_desc + chunk_off + in_row + descriptor_field(k / 4 * CHUNK * 128), k != 0);
    }
    wgmma_commit();
  };
  // --- O += P V, of a pass's chunk
  auto issue_output = [&](int chunk, int parity) {
    const uint64_t chunk_off = descriptor_field(chunk * T::KV_BYTES);
    mbarrier_wait(full_v + chunk, parity);
    wgmma_fence(P_rmem, O_rmem);
#pragma unroll
    for (int k = 0; k < CHUNK / 16; ++k)  // 16 keys are 2048 bytes
      wgmma_m64k16<1>(O_rmem, P_rmem[k], V_desc + chunk_off + descriptor_field(k * 2048), 1);
    wgmma_commit();
  };
  auto softmax = [&](int first_key) {
    // --- mask
    if (ONLY != ONLY_ALL || first_key + CHUNK > seen_by_all)  // only at the diagonal and at the end
#pragma unroll
      for (int i = 0; i < CHUNK / 2; ++i) {
        const int key = first_key + i / 4 * 8 + col + i % 2;
        S_rmem[i] = mask_score(S_rmem[i], key, visible[i / 2 % 2]);
        stage_store<ONLY_QK>(stage_rows[i / 2 % 2], key, len_kv, S_rmem[i] * scale);
      }

    // --- online softmax
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float m_new = m_rmem[h];  // of the scores before they are scaled
#pragma unroll
      for (int n = h * 2; n < CHUNK / 2; n += 4) m_new = fmaxf(m_new, fmaxf(S_rmem[n], S_rmem[n + 1]));
      m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, 1));  // a row's four lanes are neighbours
      m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, 2));
      const float base = m_new * scale_log2;
      // The difference first: 0 where the maximum stays (see v2d.cu).
      correction[h] = exp2_approx((m_rmem[h] - m_new) * scale_log2);
      m_rmem[h] = m_new;
      l_rmem[h] *= correction[h];
#pragma unroll
      for (int n = h * 2; n < CHUNK / 2; n += 4)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float p = exp2_approx(S_rmem[n + i] * scale_log2 - base);
          S_rmem[n + i] = p;  // from here on it is P
          l_rmem[h] += p;
        }
    }
  };
  auto rescale_and_pack = [&] {
#pragma unroll
    for (int d = 0; d < D / 2; ++d) O_rmem[d] *= correction[d / 2 % 2];
#pragma unroll
    for (int k = 0; k < CHUNK / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)  // 16 keys of the accumulator are one A fragment as they lie
        P_rmem[k][i] = pack_half2(S_rmem[k * 8 + i * 2], S_rmem[k * 8 + i * 2 + 1]);
  };

  mbarrier_wait(full_q, 0);
  for (int pass = 0; pass * CHUNKS < share; ++pass) {
    const int in_pass = min(CHUNKS, own_chunks - pass * CHUNKS), parity = pass & 1;
    const int pass_key = (first_chunk + pass * CHUNKS) * CHUNK;
    if (pass >
        0) {  // the chunks of the last pass are read by nobody any more, in no block that is loaded for
      if (MULTICAST) {
        BUG == BUG_V2G_RELAXED_PASS ? cluster_arrive_relaxed() : cluster_arrive();
        cluster_wait();
      } else {
        __syncthreads();
      }
      load_pass(pass);
    }
    int chunk = group;
    if (chunk < in_pass) {
      issue_scores(chunk, parity);
      wgmma_wait<0>(S_rmem);
      softmax(pass_key + chunk * CHUNK);
      rescale_and_pack();
      for (chunk += GROUPS; chunk < in_pass; chunk += GROUPS) {
        issue_scores(chunk, parity);
        issue_output(chunk - GROUPS, parity);
        wgmma_wait<1>(S_rmem);  // S is there, and P V goes on
        softmax(pass_key + chunk * CHUNK);
        wgmma_wait<0>(P_rmem, O_rmem);
        rescale_and_pack();
      }
      issue_output(chunk - GROUPS, parity);
      wgmma_wait<0>(P_rmem, O_rmem);
    }
  }

  // --- merge: rows 0 to 31 of the tile, two warps of each warpgroup, are finished by the block of key rank
  // 0, the others by that of rank 1; there by warpgroup 0, which is sent the other three partials
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    l_rmem[h] += __shfl_xor_sync(FULL_WARP, l_rmem[h], 1);
    l_rmem[h] += __shfl_xor_sync(FULL_WARP, l_rmem[h], 2);
  }
  const int half = warp_id % 4 / 2, part = warp_id % 2;  // of the tile's rows; of the half's 32
  const int finisher = rank - key_rank + half;           // the block, by its rank
  auto part_smem = [&](int slot) { return smem + T::INBOX + (slot * 2 + part) * T::PART_BYTES; };
  if (rank != finisher || group != 0) {
    const int slot = rank == finisher ? 0 : 1 + group;
    const int to = BUG == BUG_V2G_OWN_RANK ? rank : finisher;
    const uint32_t address = address_at(part_smem(slot), to) + lane_id * 16, bar = address_at(inbox, to);
#pragma unroll
    for (int i = 0; i < D / 8; ++i)
      // caught here: BUG_V2G_NO_START_BARRIER peer-not-started; BUG_V2G_NO_INBOX_WAIT peer-exited
      // caught here: BUG_V2G_EXPECT_ONE peer-exited expect-tx-mismatch
      remote_store4_async(
          address + i * 512, bar,
          make_float4(O_rmem[i * 4], O_rmem[i * 4 + 1], O_rmem[i * 4 + 2], O_rmem[i * 4 + 3]));
    remote_store4_async(address + D / 8 * 512, bar, make_float4(m_rmem[0], m_rmem[1], l_rmem[0], l_rmem[1]));
    return;
  }
  if (BUG != BUG_V2G_NO_INBOX_WAIT)
    mbarrier_wait<SCOPE_CLUSTER>(inbox, 0);  // also, nobody sends to a block that has ended
  float4 stats[SLOTS];                       // m of row and of row + 8, l of both
  float m_all[2] = {m_rmem[0], m_rmem[1]};
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    // caught here: BUG_V2G_NO_INBOX_WAIT async-not-waited; BUG_V2G_EXPECT_ONE async-not-waited
    stats[s] = reinterpret_cast<const float4*>(part_smem(s))[D / 8 * 32 + lane_id];
    m_all[0] = fmaxf(m_all[0], stats[s].x);
    m_all[1] = fmaxf(m_all[1], stats[s].y);
  }
  const float own[2] = {exp2_approx((m_rmem[0] - m_all[0]) * scale_log2),
                        exp2_approx((m_rmem[1] - m_all[1]) * scale_log2)};
#pragma unroll
  for (int h = 0; h < 2; ++h) l_rmem[h] *= own[h];
#pragma unroll
  for (int d = 0; d < D / 2; ++d) O_rmem[d] *= own[d / 2 % 2];
#pragma unroll
  for (int s = 0; s < SLOTS; ++s) {
    const float factor[2] = {exp2_approx((stats[s].x - m_all[0]) * scale_log2),
                             exp2_approx((stats[s].y - m_all[1]) * scale_log2)};
    const float l_factor[2] = {BUG == BUG_V2G_L_NOT_RESCALED ? 1.f : factor[0],
                               BUG == BUG_V2G_L_NOT_RESCALED ? 1.f : factor[1]};
    const float O_factor[2] = {BUG == BUG_V2G_O_NOT_RESCALED ? 1.f : factor[0],
                               BUG == BUG_V2G_O_NOT_RESCALED ? 1.f : factor[1]};
    l_rmem[0] += stats[s].z * l_factor[0];
    l_rmem[1] += stats[s].w * l_factor[1];
#pragma unroll
    for (int i = 0; i < D / 8; ++i) {
      const float4 theirs = reinterpret_cast<const float4*>(part_smem(s))[i * 32 + lane_id];
      O_rmem[i * 4] += theirs.x * O_factor[0];
      O_rmem[i * 4 + 1] += theirs.y * O_factor[0];
      O_rmem[i * 4 + 2] += theirs.z * O_factor[1];
      O_rmem[i * 4 + 3] += theirs.w * O_factor[1];
    }
  }

  // --- normalise and store O: 16 rows a warp, swizzled as the map says, then by TMA
  unsigned char* const O_smem = smem + T::O + part * T::O_BYTES;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float inv_l = l_rmem[h] > 0.f ? __fdividef(1.f, l_rmem[h]) : 0.f;  // a row that sees no key gives 0
#pragma unroll
    for (int d = 0; d < D / 8; ++d)
      *reinterpret_cast<uint32_t*>(O_smem + d / 8 * 16 * 128 +
                                   swizzle_128b((lane_id / 4 + h * 8) * 128 + d % 8 * 16 + col * 2)) =
          pack_half2(O_rmem[d * 4 + h * 2] * inv_l, O_rmem[d * 4 + h * 2 + 1] * inv_l);
  }
  fence_proxy_async();  // every writer: threads wrote, and TMA will read
  __syncwarp();         // so have the other lanes
  if (!STAGE_BUILD && lane_id == 0) {
    for (int c = 0; c < D / SUB; ++c)
      tma_store(&o_map, O_smem + c * 16 * 128, c * SUB, q0 + half * 32 + part * 16, head);
    tma_store_commit();
    tma_store_wait_read();  // the block's memory lasts as long as the block
  }
}

template <int D>
int launch_v2g(const void* q, const void* k, const void* v, void* o, int batch, int heads, int len_q,
               int len_kv, float scale, int causal, void* stream) {
  if (const int refused = refused_here(v2g<D>)) return refused;
  TensorMap q_map, k_map, v_map, o_map;
  int error = make_tensor_map(&q_map, q, D, len_q, batch * heads, SUB, BM);
  if (!error) error = make_tensor_map(&k_map, k, D, len_kv, batch * heads, SUB, BOX);
  if (!error) error = make_tensor_map(&v_map, v, D, len_kv, batch * heads, SUB, BOX);
  if (!error) error = make_tensor_map(&o_map, o, D, len_q, batch * heads, SUB, 16);
  if (error) return error;
  const int clusters = (len_q + ROW_BLOCKS * BM - 1) / (ROW_BLOCKS * BM);  // a head
  return LAUNCH_CLUSTER(v2g<D>, dim3(CLUSTER), dim3(clusters * CLUSTER, heads, batch), dim3(THREADS),
                        Tiles<D>::BYTES, stream, q_map, k_map, v_map, o_map, o, len_q, len_kv, scale, causal);
}

extern "C" int attention_forward(const void* q, const void* k, const void* v, void* o, const float*,
                                 int batch, int heads, int len_q, int len_kv, int head_dim, float scale,
                                 int causal, void* stream) {
  if (!arguments_are_valid(q, k, v, o, batch, heads, len_q, len_kv, scale)) return CUDA_INVALID_VALUE;
  if (head_dim == 64) return launch_v2g<64>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  if (head_dim == 128) return launch_v2g<128>(q, k, v, o, batch, heads, len_q, len_kv, scale, causal, stream);
  return CUDA_INVALID_VALUE;
}
