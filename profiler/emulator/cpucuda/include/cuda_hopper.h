// What kernels/hopper.cuh calls on the CPU. A source that includes it has clocks kept: the order between its
// threads is more than __syncthreads and __syncwarp.
#pragma once
#include "cpucuda.h"

struct alignas(64) TensorMap {  // what the driver's 128 opaque bytes say
  static constexpr uint32_t MAGIC = 0x7E4504A9;
  unsigned char* base;
  uint64_t size[3];   // columns, rows, matrices
  uint64_t pitch[2];  // bytes from row to row, from matrix to matrix
  uint64_t swizzle;   // as matrix descriptors count
  uint32_t box[2];    // columns, rows
  uint32_t magic;
  constexpr uint32_t box_bytes() const { return box[0] * box[1] * 2; }
};

namespace cpucuda {

bool ask_for_clocks();
#ifndef CPUCUDA_RUNTIME
inline const bool has_asked_for_clocks = ask_for_clocks();
#endif

uint32_t shared_address(const void* p);
void mbarrier_init(const uint64_t* bar, uint32_t arrivals);
void mbarrier_invalidate(const uint64_t* bar);
void fence_mbarrier_init();
void fence_proxy_async();
void mbarrier_arrive(const uint64_t* bar, int64_t bytes);  // bytes < 0: none are expected
void mbarrier_expect_tx(const uint64_t* bar, uint32_t bytes);
void mbarrier_wait(const uint64_t* bar, uint32_t parity, bool of_cluster);

void tma_prefetch(const TensorMap* map);
// ranks: a bit a block of the cluster; 0: the own one.
void tma_load(void* dst, const TensorMap* map, const uint64_t* bar, int x, int y, int z, unsigned ranks);
void tma_store(const TensorMap* map, const void* src, int x, int y, int z);
void tma_store_commit();
void tma_store_wait_read(int keep);
void tma_store_wait(int keep);

void named_barrier(int id, int threads, bool waits);
void set_registers(int count, bool claims);

void wgmma_fence();
void wgmma_commit();
void wgmma_wait(int keep);
// d [64][n] += a b: `operand`, four registers, or null and the descriptor `a`.
void wgmma(float* d, int n, const uint32_t* operand, uint64_t a, uint64_t b, bool accumulate, bool trans_b);

uint32_t cluster_rank();
uint32_t cluster_size();
void cluster_arrive(bool releases);
void cluster_wait();
uint32_t address_at(const void* p, uint32_t rank);
void remote_load(void* to, uint32_t address, size_t bytes);
void remote_store(uint32_t address, const void* from, size_t bytes);
void remote_store_async(uint32_t address, uint32_t bar, const void* from, size_t bytes);
void remote_copy_async(uint32_t address, uint32_t bar, const void* src, uint32_t bytes);
void remote_arrive(uint32_t bar, bool of_cluster);

// What the driver refuses of a tensor map. Source: CUDA driver API, cuTensorMapEncodeTiled.
int make_tensor_map(TensorMap* map, const void* base, int columns, int rows, int matrices, int box_columns,
                    int box_rows, uint64_t swizzle);
// The launch that comes next is of clusters of so many blocks.
void of_clusters(dim3 blocks);

}  // namespace cpucuda
