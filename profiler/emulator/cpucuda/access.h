// The check of every access: whose memory it is, and what the shadow of that memory says.
#pragma once
#include "banks.h"
#include "global.h"

namespace cpucuda {
namespace {

__attribute__((cold, noinline)) void perhaps_yield() {
  if ((rnd() >> 11) * 0x1p-53 < config.preempt) yield();
}
template <bool WRITE>
inline void access(const void* p, size_t bytes, Pc pc, bool aligned = true, bool bank = true,
                   bool atomic = false, bool reads = false) {
  if (!cur || quiet) return;
  if (__builtin_expect(overwrites, 0)) settle_overwrite();
  const uintptr_t a = (uintptr_t)p;
  if (a - cur->stack < STACK) return;
  if (aligned && bytes <= 16 && a & (bytes - 1)) {
    report(MISALIGNED, pc, 0, "%s %zu bytes at %p: not aligned to them", WRITE ? "writes" : "reads", bytes,
           p);
    abort_block();  // as the GPU does
  }
  // Before the checks: nothing may come between them and the access.
  if (__builtin_expect(config.preempt > 0, 0)) perhaps_yield();
  const size_t offset = a - (uintptr_t)smem;
  if (offset + SMEM_GUARD < SMEM_CAP + 2 * SMEM_GUARD) {
    check_shared<WRITE>({offset, bytes, pc, atomic, false, reads});
    if (bank && offset < SMEM_CAP && bytes <= 16 && !(bytes & (bytes - 1)))
      log_access(offset, bytes, WRITE, pc);
  } else {
    check_global<WRITE>(a, bytes, pc, atomic, reads);
  }
}

}  // namespace
}  // namespace cpucuda
