// A block of threads from start to end: barriers, the end of a thread, deadlock.
#pragma once
#include "hopper.h"

namespace cpucuda {
namespace {

void flush_logs(const Block& block) {
  for (int w = 0; w < nwarps; ++w) flush_log(block.first_warp + w, ~0u);
}
void release_barrier(Block& block, const char* file, int line) {
  if (block.live < nthreads)
    report_at(BARRIER_DIVERGENCE, file, line,
              "%d of %d threads have ended when the rest meet at this __syncthreads", nthreads - block.live,
              nthreads);
  fences_meet_at_barrier();
  if (clocks) clocks_meet(block);
  block.barrier = ++now;
  block.at_barrier = 0;
  each_thread(block, [](Fiber& f) {
    if (f.state == AT_BARRIER) set_ready(f);
  });
  linger = (1u << 4 * (rnd() & 3)) - 1;  // 0, 15, 255 or 4095: finely interleaved to one warp far ahead
  if (running == &block) running_warp = config.random ? rnd() % nwarps : 0;
  flush_logs(block);
}
const Fiber* waiting_at_barrier(const Block& block) {
  const Fiber* waiting = nullptr;
  each_thread(block, [&](Fiber& f) {
    if (!waiting && f.state == AT_BARRIER) waiting = &f;
  });
  return waiting;
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
    report(CP_ASYNC_LEFT_PENDING, cur->async.back().pc, 0, "ends with %zu cp.async never waited for",
           cur->async.size());
  if (clocks) end_of_hopper_thread();
  Warp& w = warps[cur->warp];
  w.live &= ~(1u << cur->lane);
  --live;
  if (--cta->live && cta->at_barrier == cta->live) {
    const Fiber* other = waiting_at_barrier(*cta);
    release_barrier(*cta, other->file, other->line);
  }
  cur->state = DONE;
  if (clocks) thread_has_ended();
  sleep(w);
}
void prepare(Fiber& f, Block& block, int t) {
  f.cta = &block;
  f.id = block.first_warp * WARP + t, f.warp = f.id / WARP, f.lane = t % WARP;
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
// Of one warp that waits: for what, in words; empty where all of it has ended.
std::string stuck(const Fiber* f, const Fiber* end, const Fiber** where) {
  while (f < end && f->state == DONE) ++f;
  if (f == end) return "";
  *where = f;
  char text[200];
  if (f->state == AT_BARRIER)
    snprintf(text, sizeof text, "at __syncthreads, line %d", f->line);
  else if (f->state == WAITS)
    return "waits for " + waited_for(*f);
  else
    snprintf(text, sizeof text, "in a warp collective of lanes %08x, of which %08x came",
             warps[f->warp].mask[f->lane], warps[f->warp].waiting);
  return text;
}
// At each place where threads wait.
void report_deadlock() {
  std::string text;
  std::vector<const Fiber*> places;
  std::vector<std::pair<std::string, int>> whys;  // of warps, and how many more warps are stuck alike
  for (int b = 0; b < nblocks; ++b)
    for (int w = 0; w < nwarps; ++w) {
      const Fiber* first = fibers + (blocks[b].first_warp + w) * WARP;
      const Fiber* where = nullptr;
      const std::string why = stuck(first, first + std::min(WARP, nthreads - w * WARP), &where);
      if (!where) continue;
      const std::string name =
          (nblocks > 1 ? " rank " + std::to_string(b) : "") + " warp " + std::to_string(w) + " ";
      if (!whys.empty() && whys.back().first == why) {
        ++whys.back().second;
      } else {
        whys.push_back({why, 0});
        if (text.size() < 250) text += (text.empty() ? "" : ";") + name + why;
      }
      const bool is_new = std::none_of(places.begin(), places.end(), [&](const Fiber* f) {
        return where->state == AT_BARRIER ? f->state == AT_BARRIER && f->line == where->line
                                          : f->state != AT_BARRIER && f->pc == where->pc;
      });
      if (is_new) places.push_back(where);
    }
  for (const Fiber* where : places) {
    const char* format = "no thread can run:%s";
    if (where->state == AT_BARRIER)
      report_at(DEADLOCK, where->file, where->line, format, text.c_str());
    else
      report(DEADLOCK, where->pc, 0, format, text.c_str());
    if (!clocks) break;
  }
}
void start_block(Block& block, uint3 id, int rank) {
  block.id = id, block.rank = rank, block.first_warp = rank * nwarps;
  block.live = nthreads, block.at_barrier = 0, block.barrier = now;
  std::memset(block.smem, 0xff, smem_bytes);  // NaN in every format
  block.ready_warps = nwarps == WARP ? ~0u : (1u << nwarps) - 1;
  for (int w = 0; w < nwarps; ++w) {
    const int lanes = std::min(WARP, nthreads - w * WARP);
    Warp& warp = warps[block.first_warp + w];
    warp.ready = warp.live = lanes == WARP ? ~0u : (1u << lanes) - 1;
    warp.waiting = warp.logged = warp.parked = 0, warp.synced = now, warp.partial = false;
  }
  const dim3 size = block_dim;
  for (unsigned t = 0; t < unsigned(nthreads); ++t) {
    Fiber& f = fibers[block.first_warp * WARP + t];
    f.index = {t % size.x, t / size.x % size.y, t / size.x / size.y};
    prepare(f, block, t);
  }
}
// The blocks of a cluster side by side; `first` is the one of rank 0.
void run_cluster(uint3 first) {
  live = nblocks * nthreads;
  block_start = ++now;
  running = cta = blocks;
  cta->id = first;
  start_order(false);
  if (clocks) start_hopper_cluster();
  for (int rank = 0; rank < nblocks; ++rank) {
    const unsigned x = cluster_dim.x, y = cluster_dim.y, r = rank;
    start_block(blocks[rank], {first.x + r % x, first.y + r / x % y, first.z + r / x / y}, rank);
    if (clocks) start_hopper_block(blocks[rank]);
  }
  linger = (1u << 4 * (rnd() & 3)) - 1;
  running_warp = config.random ? rnd() % nwarps : 0;
  go(nullptr, pick());  // comes back when no thread can run
  cur = nullptr;
  if (live && !aborted) {
    report_deadlock();
    aborted = true;
  }
  if (clocks) end_hopper_cluster();
  for (int b = 0; b < nblocks; ++b) flush_logs(blocks[b]);
}

}  // namespace
}  // namespace cpucuda
