// Threads that wait for something that others, or what works on its own, bring about.
#pragma once
#include "access.h"

namespace cpucuda {
namespace {

// Until somebody wakes those that wait for the object; the caller then looks again whether it has come.
void wait_on(const void* object, What what, uint32_t wanted, Pc pc) {
  if (overwrites) settle_overwrite();
  cur->waits_for = object, cur->what = what, cur->wanted = wanted, cur->pc = pc;
  cur->state = WAITS;
  sleep(warps[cur->warp]);
}
void wake(const void* object) {
  for (int b = 0; b < nblocks; ++b)
    each_thread(blocks[b], [&](Fiber& f) {
      if (f.state == WAITS && f.waits_for == object) set_ready(f);
    });
}
// What is done, or comes to light, for a thread that may not be the running one: findings name it.
template <class F>
void on_behalf(Fiber* thread, F act) {
  Fiber* const running_thread = std::exchange(cur, thread);
  Block* const its_block = std::exchange(cta, thread->cta);
  act();
  cur = running_thread, cta = its_block;
}
// What the running thread does to the memory of another block.
template <class F>
void within(Block& block, F act) {
  Block* const its_block = std::exchange(cta, &block);
  act();
  cta = its_block;
}
bool in_shared_memory(size_t offset, size_t bytes) {
  return offset < SMEM_CAP && offset + bytes <= smem_bytes;
}
// Of an address, by its distance from where shared memory starts.
std::string place_in_shared(size_t offset) {
  if (offset + SMEM_GUARD >= SMEM_CAP + 2 * SMEM_GUARD) return "an address that is not shared memory";
  return "shared byte " + std::to_string(ssize_t(offset)) + " of " + std::to_string(smem_bytes);
}

}  // namespace
}  // namespace cpucuda
