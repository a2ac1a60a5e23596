// The check of every access: whose memory it is, and what the shadow of that memory says.
#pragma once
#include "banks.h"
#include "global.h"

namespace cpucuda {
namespace {

__attribute__((cold, noinline)) void perhaps_yield() {
  if ((rnd() >> 11) * 0x1p-53 < config.preempt) yield();
}
// Registers are the own stack: which of them a product owns, and when the others were last used, which a
// wgmma_fence must lie behind.
__attribute__((cold, noinline)) void use_owned_register(uintptr_t a, size_t bytes, bool write, Pc pc) {
  for (const Registers& r : cur->in_flight)
    if (a < r.hi && a + bytes > r.lo)
      return report(WGMMA_NOT_WAITED, pc, 0, "%s a register that a wgmma in flight %s",
                    write ? "writes" : "reads", r.is_operand ? "reads" : "writes");
}
inline void use_register(uintptr_t a, size_t bytes, bool write, Pc pc) {
  if (a < cur->in_flight_hi && a + bytes > cur->in_flight_lo) use_owned_register(a, bytes, write, pc);
  const size_t end = std::min((a + bytes - 1 - cur->stack) / 4 + 1, STACK / 4);
  for (size_t i = (a - cur->stack) / 4; i < end; ++i) cur->touched[i] = cur->fence_epoch;
}
template <bool WRITE>
inline void access(const void* p, size_t bytes, Pc pc, bool aligned = true, bool bank = true,
                   bool atomic = false, bool reads = false) {
  if (!cur || quiet) return;
  if (__builtin_expect(overwrites, 0)) settle_overwrite();
  const uintptr_t a = (uintptr_t)p;
  if (a - cur->stack < STACK) {
    if (__builtin_expect(clocks, 0)) use_register(a, bytes, WRITE, pc);
    return;
  }
  if (aligned && bytes <= 16 && a & (bytes - 1)) {
    report(MISALIGNED, pc, 0, "%s %zu bytes at %p: not aligned to them", WRITE ? "writes" : "reads", bytes,
           p);
    abort_block();  // as the GPU does
  }
  // Before the checks: nothing may come between them and the access.
  if (__builtin_expect(config.preempt > 0, 0)) perhaps_yield();
  const size_t offset = a - (uintptr_t)cta->smem;
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
