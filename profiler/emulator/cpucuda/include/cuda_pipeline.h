// cp.async as <cuda_pipeline.h> spells it.
#pragma once
#include "cpucuda.h"

__forceinline__ void __pipeline_memcpy_async(void* dst, const void* src, size_t bytes, size_t zeros = 0) {
  cpucuda::cp_async(dst, src, bytes, zeros);
}
__forceinline__ void __pipeline_commit() { cpucuda::cp_commit(); }
__forceinline__ void __pipeline_wait_prior(int keep) { cpucuda::cp_wait(keep); }
