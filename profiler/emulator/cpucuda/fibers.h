// Threads as fibers: how to switch from one to another, and which one runs next.
#pragma once
#include "defects.h"

namespace cpucuda {
namespace {

#if !CPUCUDA_UCONTEXT
// Saves the callee-saved registers on this stack and goes on with the other. It leaves by a jump, since `ret`
// is predicted to return to the caller, which never happens here.
extern "C" void cpucuda_switch(void** save, void* to);
asm(R"(
.text
.globl cpucuda_switch
.hidden cpucuda_switch
.type cpucuda_switch,@function
cpucuda_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size cpucuda_switch,.-cpucuda_switch
)");
void go(Fiber* from, Fiber* to) {  // null: the host
  cur = to;
  if (to) cta = to->cta;
  cpucuda_switch(from ? &from->sp : &main_sp, to ? to->sp : main_sp);
}
#else
void go(Fiber* from, Fiber* to) {
  cur = to;
  if (to) cta = to->cta;
  swapcontext(from ? &from->uc : &main_uc, to ? &to->uc : &main_uc);
}
#endif

bool land_something();  // of what TMA has in flight; false where that is nothing

// Goes on with a block of the cluster that has a warp that can run; false where none has.
__attribute__((noinline)) bool pick_block() {
  if (nblocks == 1) return running->ready_warps;
  if (running->ready_warps && !(config.random && !(rnd() & 31))) return true;
  Block* able[MAX_CLUSTER];
  int count = 0;
  for (int b = 0; b < nblocks; ++b)
    if (blocks[b].ready_warps) able[count++] = blocks + b;
  if (count) running = able[config.random ? rnd() % count : 0];
  return count;
}
// The thread that runs next: a lane of the running warp or of another one; null when none can run.
Fiber* pick() {
  if (aborted) return nullptr;
  if (clocks && config.landing == ROWS && !(rnd() & 3)) land_something();
  if (nblocks > 1 || !running->ready_warps)
    while (!pick_block())
      if (!land_something()) return nullptr;
  const unsigned ready_warps = running->ready_warps;
  int w = running_warp;
  if (!config.random) {
    if (!(ready_warps >> w & 1)) w = __builtin_ctz(ready_warps);
    running_warp = w;
    w += running->first_warp;
    return fibers + w * WARP + __builtin_ctz(warps[w].ready);
  }
  const uint64_t r = rnd();
  if (!(ready_warps >> w & 1) || !(r >> 40 & linger)) {
    const int turn = r >> 32 & 31;
    const unsigned turned = turn ? ready_warps >> turn | ready_warps << (32 - turn) : ready_warps;
    running_warp = w = (__builtin_ctz(turned) + turn) & 31;
  }
  w += running->first_warp;
  const int turn = r >> 16 & 31;
  const unsigned ready = warps[w].ready, turned = turn ? ready >> turn | ready << (32 - turn) : ready;
  return fibers + w * WARP + ((__builtin_ctz(turned) + turn) & 31);
}
void yield() {
  Fiber* me = cur;
  Fiber* next = pick();
  if (next != me) go(me, next);
}
unsigned warp_bit(const Fiber& f) { return 1u << (f.warp - f.cta->first_warp); }
// Lanes in __activemask go on when no other lane of their warp can: those at the same place are converged.
void converge(Warp& w) {
  for (unsigned m = w.parked; m; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    unsigned together = 0;
    for (unsigned n = w.parked; n; n &= n - 1)
      if (w.place[__builtin_ctz(n)] == w.place[lane]) together |= n & -n;
    w.out[lane] = together;
  }
  w.ready |= std::exchange(w.parked, 0);
}
void sleep(Warp& w) {
  w.ready &= ~(1u << cur->lane);
  if (!w.ready && w.parked) converge(w);
  if (!w.ready) cur->cta->ready_warps &= ~warp_bit(*cur);
  yield();
}
// `f` of each thread of a block.
template <class F>
void each_thread(const Block& block, F f) {
  for (int t = 0; t < nthreads; ++t) f(fibers[block.first_warp * WARP + t]);
}
void set_ready(Fiber& f) {
  f.state = RUNS;
  warps[f.warp].ready |= 1u << f.lane;
  f.cta->ready_warps |= warp_bit(f);
}
[[noreturn]] void abort_block() {
  aborted = true, quiet = false;
  yield();  // never comes back
  __builtin_unreachable();
}

}  // namespace
}  // namespace cpucuda
