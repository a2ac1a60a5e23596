// What a kernel's thread calls: barriers, warp collectives, cp.async, accesses of intrinsics.
#pragma once
#include "block.h"

namespace cpucuda {

uint3 thread_index() { return cur->index; }
uint3 block_index() { return cta->id; }
dim3 block_size() { return block_dim; }
dim3 grid_size() { return grid_dim; }
int lane() { return cur->lane; }
unsigned char* dyn_smem() { return cta->smem; }

void fail(const char* format, ...) {
  Defect& f = note(MISUSE, offset_of(CALLER), nullptr, 0);
  va_list args;
  va_start(args, format);
  if (!f.count++) describe(f, format, args);
  va_end(args);
  abort_block();
}

// Two threads in a barrier of one function: whether they called it at two places. The two may be copies that
// the compiler made of one call: run_result.py, which knows lines, leaves those out.
static void compare_calls(const Fiber& other) {
  const int kept = sizeof other.calls / sizeof *other.calls;
  for (int i = 0; i < std::min({cur->depth, other.depth, kept}); ++i)
    if (cur->calls[i] != other.calls[i])
      return report(BARRIER_DIVERGENCE, cur->calls[i], offset_of(other.calls[i]),
                    "waits in a __syncthreads of what it calls here while thread %d does in another call",
                    other.id);
}
void syncthreads(const char* file, int line, int place) {
  if (overwrites) settle_overwrite();
  if (const Fiber* other = cta->at_barrier ? waiting_at_barrier(*cta) : nullptr) {
    if (other->place != place) {  // the hardware counts arrivals and goes on, threads in different phases
      const char* format = other->line == line && !std::strcmp(other->file, file)
                               ? "waits here while thread %d waits at another __syncthreads of line %d"
                               : "waits here while thread %d waits at the __syncthreads of line %d";
      report_at(BARRIER_DIVERGENCE, file, line, format, other->id, other->line);
      report_at(BARRIER_DIVERGENCE, other->file, other->line, format, cur->id, line);
    } else {
      compare_calls(*other);
    }
  }
  cur->file = file, cur->line = line, cur->place = place;
  if (++cta->at_barrier == cta->live) {
    release_barrier(*cta, file, line);
    if (config.random) yield();
    return;
  }
  cur->state = AT_BARRIER;
  sleep(warps[cur->warp]);
}

[[noreturn]] __attribute__((cold, noinline)) static void another_collective(const Warp& w, Op op, unsigned mask,
                                                                            Pc pc) {
  int l = 0;
  while (!(mask >> l & 1) || w.op[l] == op) ++l;
  report(MISUSE, pc, offset_of(fibers[cur->warp * WARP + l].pc),
         "is in a %s, lane %d in a %s of the same mask", OP_NAME[op], l, OP_NAME[w.op[l]]);
  abort_block();
}
// True for the last lane of a collective: the others may run again. Lanes that wait for each other name the
// same mask; one that waits with another is in a collective of its own, and may come to this one after it.
static bool arrive(Op op, unsigned mask, Pc pc) {
  if (overwrites) settle_overwrite();
  Warp& w = warps[cur->warp];
  const unsigned bit = 1u << cur->lane;
  if (!(mask & bit)) {
    report(MISUSE, pc, 0, "calls a collective whose mask %08x leaves it out", mask);
    abort_block();
  }
  cur->pc = pc;
  w.op[cur->lane] = op, w.mask[cur->lane] = mask;
  w.waiting |= bit;
  if ((w.waiting & mask) != mask) return false;
  unsigned others = 0, other_ops = 0;  // not 0: a lane of the mask names another mask, or another collective
  for (int l = 0; l < WARP; ++l) {
    const unsigned in_mask = -(mask >> l & 1);
    others |= (w.mask[l] ^ mask) & in_mask, other_ops |= (unsigned(w.op[l]) ^ op) & in_mask;
  }
  if (others) return false;
  if (other_ops) another_collective(w, op, mask, pc);
  w.waiting &= ~mask;
  w.ready |= mask;
  cta->ready_warps |= warp_bit(*cur);
  flush_log(cur->warp, mask);
  return true;
}
static void collective_at(Op op, unsigned mask, void* payload, void (*run)(void**, unsigned), Pc pc) {
  Warp& w = warps[cur->warp];
  w.payload[cur->lane] = payload;
  if (!arrive(op, mask, pc)) return sleep(w);
  if (run) {
    quiet = true;
    run(w.payload, mask);
    quiet = false;
  }
}
void collective(Op op, unsigned mask, void* payload, void (*run)(void**, unsigned)) {
  collective_at(op, mask, payload, run, CALLER);
}
void syncwarp(unsigned mask) {
  Warp& w = warps[cur->warp];
  if (!arrive(OP_SYNCWARP, mask, CALLER)) return sleep(w);
  fences_meet_at_syncwarp(mask);
  if (clocks) clocks_meet(cur->warp, mask);
  ++now;
  if (mask == ~0u || mask == w.live) {
    w.synced = now, w.partial = false;
    return;
  }
  if (!w.partial) std::memset(w.seen, 0, sizeof w.seen);
  w.partial = true;
  uint32_t known[WARP] = {};
  for (unsigned m = mask; m; m &= m - 1)
    for (int l = 0; l < WARP; ++l) known[l] = std::max(known[l], w.seen[__builtin_ctz(m)][l]);
  for (unsigned m = mask; m; m &= m - 1) known[__builtin_ctz(m)] = now;
  for (unsigned m = mask; m; m &= m - 1) std::memcpy(w.seen[__builtin_ctz(m)], known, sizeof known);
}
uint64_t shuffle(Op op, unsigned mask, uint64_t value, int from) {
  Warp& w = warps[cur->warp];
  const int me = cur->lane;
  w.in[me] = value, w.from[me] = from & 31;
  if (!(mask >> (from & 31) & 1)) {
    report(MISUSE, CALLER, 0, "shuffles from lane %d, which is outside the mask %08x", from, mask);
    abort_block();
  }
  if (arrive(op, mask, CALLER)) {
    if (mask == ~0u)  // a loop without a branch, which all but the odd shuffle takes
      for (int l = 0; l < WARP; ++l) w.out[l] = w.in[w.from[l]];
    else
      for (int l = 0; l < WARP; ++l)
        if (mask >> l & 1) w.out[l] = w.in[w.from[l]];
  } else {
    sleep(w);
  }
  return w.out[me];
}

void cp_async(void* dst, const void* src, size_t bytes, size_t zeros) {
  const Pc pc = CALLER;
  const size_t offset = (uintptr_t)dst - (uintptr_t)cta->smem;
  if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes) {
    report(MISUSE, pc, 0, "cp.async of %zu bytes, %zu of them zeros", bytes, zeros);
    abort_block();
  }
  if ((uintptr_t)dst % bytes || (uintptr_t)src % bytes) {
    report(MISALIGNED, pc, 0, "cp.async of %zu bytes from %p to shared byte %zd: not aligned to them", bytes,
           src, (ssize_t)offset);
    abort_block();
  }
  if (offset + SMEM_GUARD >= SMEM_CAP + 2 * SMEM_GUARD) {
    report(MISUSE, pc, 0, "cp.async into memory that is not shared");
    abort_block();
  }
  if (zeros < bytes) access<false>(src, bytes - zeros, pc, false, false);
  check_shared<true>({offset, bytes, pc, false, true});
  if (offset + bytes > smem_bytes) return;  // reported
  cur->async.push_back({(unsigned char*)dst, (const unsigned char*)src, uint32_t(bytes), uint32_t(zeros),
                        cur->group, false, pc});
  if (config.random && rnd() & 1) land(cur->async.back());  // at once, or as late as the wait
}
void cp_commit() { cur->group++; }
void cp_wait(int keep) {
  auto& async = cur->async;
  size_t done = 0;
  for (; done < async.size() && async[done].group < cur->group - keep; ++done) {
    Async& a = async[done];
    if (!a.landed) land(a);
    const size_t offset = a.dst - cta->smem;
    for (size_t g = cell_of(offset); g <= cell_of(offset + a.bytes - 1); ++g) {
      Cell& cell = cta->shadow[g];
      cell.pending = 0, cell.written = now;  // from here its own write
      if (clocks)
        cell.agent = cur->id;
      else
        cell.writer = cur->id;
    }
  }
  async.erase(async.begin(), async.begin() + done);
}

// Accesses that the intrinsics make for a lane.
void ld(void* to, const void* from, size_t bytes, bool bank) {
  access<false>(from, bytes, CALLER, true, bank);
  std::memcpy(to, from, bytes);
}
void st(void* to, const void* from, size_t bytes) {
  access<true>(to, bytes, CALLER);
  std::memcpy(to, from, bytes);
}
void row16(const void* p) { access<false>(p, 16, CALLER); }
void atomic_mark(const void* p, size_t bytes, bool reads) {
  access<true>(p, bytes, CALLER, true, true, true, reads);
  atomic_order(p);
}
void threadfence() {
  if (overwrites) settle_overwrite();
  fence();
}
unsigned activemask(int place) {
  Warp& w = warps[cur->warp];
  w.parked |= 1u << cur->lane, w.place[cur->lane] = place;
  sleep(w);
  return w.out[cur->lane];
}

}  // namespace cpucuda
