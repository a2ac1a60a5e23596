// A block of threads from start to end: barriers, the end of a thread, deadlock.
#pragma once
#include "access.h"

namespace cpucuda {
namespace {

void release_barrier(const char* file, int line) {
  if (live < nthreads)
    report_at(BARRIER_DIVERGENCE, file, line,
              "%d of %d threads have ended when the rest meet at this __syncthreads", nthreads - live,
              nthreads);
  fences_meet_at_barrier();
  barrier = ++now;
  at_barrier = 0;
  for (int t = 0; t < nthreads; ++t)
    if (fibers[t].state == AT_BARRIER) {
      fibers[t].state = RUNS;
      warps[fibers[t].warp].ready |= 1u << fibers[t].lane;
      ready_warps |= 1u << fibers[t].warp;
    }
  linger = (1u << 4 * (rnd() & 3)) - 1;  // 0, 15, 255 or 4095: finely interleaved to one warp far ahead
  running_warp = config.random ? rnd() % nwarps : 0;
  for (int w = 0; w < nwarps; ++w) flush_log(w, ~0u);
}
const Fiber* waiting_at_barrier() {
  for (int t = 0; t < nthreads; ++t)
    if (fibers[t].state == AT_BARRIER) return fibers + t;
  return nullptr;
}
void land(Async& a) {
  std::memcpy(a.dst, a.src, a.bytes - a.zeros);
  std::memset(a.dst + a.bytes - a.zeros, 0, a.zeros);
  a.landed = true;
}

void run_thread() {
  body(body_argument);
  if (overwrites) settle_overwrite();
  if (!cur->async.empty())
    report(ASYNC_LEFT_PENDING, cur->async.back().pc, 0, "ends with %zu cp.async never waited for",
           cur->async.size());
  Warp& w = warps[cur->warp];
  w.live &= ~(1u << cur->lane);
  if (--live && at_barrier == live) {
    const Fiber* other = waiting_at_barrier();
    release_barrier(other->file, other->line);
  }
  cur->state = DONE;
  sleep(w);
}
void prepare(Fiber& f, int t) {
  f.id = t, f.warp = t / WARP, f.lane = t % WARP;
  f.state = RUNS, f.group = f.depth = 0;
  f.async.clear(), f.log.clear(), f.overwrite.bytes = 0;
  // Stacks start at different cache lines: lanes in step would otherwise evict each other's.
  char* top = (char*)f.stack + STACK - 256 - f.lane * 128 - f.warp % 8 * 64 * 65;
#if !CPUCUDA_UCONTEXT
  void** sp = reinterpret_cast<void**>((uintptr_t)top & ~63ull);
  *--sp = nullptr;  // in the place of a return address: the frame is aligned as after a call
  *--sp = reinterpret_cast<void*>(run_thread);
  for (int i = 0; i < 6; ++i) *--sp = nullptr;
  f.sp = sp;
#else
  getcontext(&f.uc);
  f.uc.uc_stack.ss_sp = (void*)f.stack, f.uc.uc_stack.ss_size = top - (char*)f.stack, f.uc.uc_link = nullptr;
  makecontext(&f.uc, run_thread, 0);
#endif
}
void report_deadlock() {
  std::string text;
  const Fiber* where = nullptr;
  for (int w = 0; w < nwarps; ++w) {
    const Fiber* f = fibers + w * WARP;
    while (f->state == DONE && f < fibers + std::min(nthreads, (w + 1) * WARP) - 1) ++f;
    if (f->state == DONE) continue;
    if (!where) where = f;
    char line[128];
    if (f->state == AT_BARRIER)
      snprintf(line, sizeof line, "%s warp %d at __syncthreads, line %d", text.empty() ? "" : ";", w, f->line);
    else
      snprintf(line, sizeof line, "%s warp %d in a warp collective of lanes %08x, of which %08x came",
               text.empty() ? "" : ";", w, warps[w].mask[f->lane], warps[w].waiting);
    if (text.size() < 250) text += line;
  }
  const char* format = "no thread can run:%s";
  if (where->state == AT_BARRIER)
    report_at(DEADLOCK, where->file, where->line, format, text.c_str());
  else
    report(DEADLOCK, where->pc, 0, format, text.c_str());
}
void run_block(uint3 bid, dim3 grid, dim3 block) {
  block_id = bid, block_dim = block, grid_dim = grid;
  nthreads = live = block.x * block.y * block.z;
  nwarps = (nthreads + WARP - 1) / WARP;
  at_barrier = 0;
  block_start = barrier = ++now;
  start_order(false);
  std::memset(smem, 0xff, smem_bytes);  // NaN in every format
  ready_warps = nwarps == WARP ? ~0u : (1u << nwarps) - 1;
  linger = (1u << 4 * (rnd() & 3)) - 1;
  running_warp = config.random ? rnd() % nwarps : 0;
  for (int w = 0; w < nwarps; ++w) {
    const int lanes = std::min(WARP, nthreads - w * WARP);
    Warp& warp = warps[w];
    warp.ready = warp.live = lanes == WARP ? ~0u : (1u << lanes) - 1;
    warp.waiting = warp.logged = warp.parked = 0, warp.synced = now, warp.partial = false;
  }
  for (int t = 0; t < nthreads; ++t) {
    fibers[t].index = {t % block.x, t / block.x % block.y, t / block.x / block.y};
    prepare(fibers[t], t);
  }
  Fiber* first = pick();
  go(nullptr, first);  // comes back when no thread can run
  cur = nullptr;
  if (live && !aborted) {
    report_deadlock();
    aborted = true;
  }
  for (int w = 0; w < nwarps; ++w) flush_log(w, ~0u);
}

}  // namespace
}  // namespace cpucuda
