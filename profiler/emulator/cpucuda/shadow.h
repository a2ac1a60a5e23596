// The shadow of shared memory, which knows who touched what and when in the running block.
#pragma once
#include "order.h"

namespace cpucuda {
namespace {

size_t cell_of(size_t offset) {
  return (offset & ~(REGION - 1)) + ((offset & (REGION - 1)) >> granule_shift[offset / REGION]);
}
size_t byte_of(size_t cell) {
  return (cell & ~(REGION - 1)) + ((cell & (REGION - 1)) << granule_shift[cell / REGION]);
}
void refine(size_t region, int finer) {  // each new cell starts as a copy of the one it was part of
  const size_t base = region * REGION;
  const int by = granule_shift[region] - finer;
  for (size_t i = REGION >> finer; i-- > 0;) {
    const size_t from = base + (i >> by);
    for (int b = 0; b < nblocks; ++b) {
      const Block& block = blocks[b];
      block.shadow[base + i] = block.shadow[from];
      block.written_at[base + i] = block.written_at[from];
      block.read_at[base + i] = block.read_at[from];
    }
  }
  granule_shift[region] = finer;
}

// A store of the value that is there already harms nothing, as where all lanes store their common sum. What
// it stored is known when its thread comes to its next access or meets others.
int overwrites;  // not settled
__attribute__((cold, noinline)) void settle_overwrite() {
  Overwrite& o = cur->overwrite;
  if (!o.bytes) return;
  if (std::memcmp(o.before, o.place, o.bytes)) report(o.kind, o.pc, o.other_pc, "%s", o.text.c_str());
  o.bytes = 0, --overwrites;
}
void remember_overwrite(Kind kind, const void* place, size_t bytes, Pc pc, uint32_t other_pc,
                        std::string text) {
  cur->overwrite = {kind, place, bytes, {}, pc, other_pc, std::move(text)};
  std::memcpy(cur->overwrite.before, place, bytes);
  ++overwrites;
}

// Who makes an access that is none of the running thread's own: when, and what comes before it.
struct Actor {
  uint32_t agent, time;
  const std::vector<uint32_t>&known, &proxied;
};
struct Access {
  size_t offset, bytes;
  Pc pc;
  bool atomic, async;
  bool reads = atomic;  // of an atomic: whether it computes with the old value, as all but atomicExch do
  const Actor* by = nullptr;  // of the async proxy
};
__attribute__((cold, noinline)) void slow_read(const Cell& c, size_t g, const Access& a, const Warp& w) {
  const size_t byte = std::max(a.offset, byte_of(g));
  if (c.written < block_start)
    report(UNINITIALISED, a.pc, 0, "reads shared byte %zu, which nothing has written in this block", byte);
  else if (c.pending)
    report(CP_ASYNC_NOT_WAITED, a.pc, cta->written_at[g],
           "reads shared byte %zu while the cp.async of thread %d to it is in flight", byte, c.writer);
  else if (!ordered(w, c.writer, c.written))
    report(RACE_RAW, a.pc, cta->written_at[g],
           "reads shared byte %zu, written by thread %d (warp %d) with no barrier between", byte, c.writer,
           c.writer / WARP);
}
inline void read_cell(Cell& c, size_t g, const Access& a, const Warp& w) {
  if (c.written < block_start || c.pending || (c.written >= cta->barrier && !ordered(w, c.writer, c.written)))
    slow_read(c, g, a, w);
  const int id = cur->id;
  if (c.read < cta->barrier) {
    c.many = 0;
  } else if (c.reader / WARP != id / WARP) {
    c.other_read = c.read, c.other_warp = c.reader / WARP, c.many = 0;
  } else if (c.read < w.synced) {
    c.many = 0;
  } else if (c.reader != id) {
    c.many = 1;
  }
  c.reader = id, c.read = now;
}
__attribute__((cold, noinline)) void overwrite(const Cell& c, size_t g, size_t byte, const Access& a) {
  char text[160];
  snprintf(text, sizeof text, "writes shared byte %zu, written by %s with no barrier between", byte,
           agent_name(clocks ? c.agent : c.writer).c_str());
  if (a.atomic || a.async || c.atomic || a.bytes > sizeof Overwrite::before)
    report(RACE_WAW, a.pc, cta->written_at[g], "%s", text);
  else if (!cur->overwrite.bytes)  // else another byte of this access
    remember_overwrite(RACE_WAW, cta->smem + a.offset, a.bytes, a.pc, cta->written_at[g],
                       std::string(text) + " and with another value");
}
__attribute__((cold, noinline)) void slow_write(const Cell& c, size_t g, const Access& a, const Warp& w) {
  const size_t byte = std::max(a.offset, byte_of(g));
  if (c.written >= block_start) {
    if (c.pending)
      report(CP_ASYNC_NOT_WAITED, a.pc, cta->written_at[g],
             "writes shared byte %zu while the cp.async of thread %d to it is in flight", byte, c.writer);
    else if (!ordered(w, c.writer, c.written) && !(a.atomic && c.atomic))
      overwrite(c, g, byte, a);
  } else if (a.reads) {
    report(UNINITIALISED, a.pc, 0, "adds to shared byte %zu, which nothing has written in this block", byte);
  }
  const bool others =
      c.many && c.reader == cur->id && c.read >= std::max(w.synced, cta->barrier) && !w.partial;
  if (!ordered(w, c.reader, c.read) || others)
    report(RACE_WAR, a.pc, cta->read_at[g], "writes shared byte %zu, read by %s with no barrier between",
           byte, c.reader / WARP == cur->warp ? "another lane of its warp" : "another warp");
  else if (c.other_read >= cta->barrier && c.other_warp != cur->warp)
    report(RACE_WAR, a.pc, 0, "writes shared byte %zu, read by warp %d with no barrier between", byte,
           c.other_warp);
}
inline void write_cell(Cell& c, size_t g, const Access& a, const Warp& w) {
  const uint32_t barrier = cta->barrier;
  if (c.written >= barrier || c.read >= barrier || c.other_read >= barrier || c.pending || a.atomic)
    slow_write(c, g, a, w);
  // An atomic after an own store with no barrier between leaves it a store: others must come after that too.
  const bool over_own_store = a.atomic && !c.atomic && c.written >= std::max(barrier, w.synced) &&
                              c.writer == cur->id && !w.partial;
  c.written = now, c.writer = cur->id, c.atomic = a.atomic && !over_own_store, c.pending = a.async;
  c.read = c.other_read = 0, c.many = 0;
}

// --- the same where clocks are kept

struct Reader {
  uint32_t agent, time;
};
// Sets of readers of which none comes before another. They never change: cells share them.
std::vector<std::vector<Reader>> reader_sets;
struct {
  uint32_t before, agent, time, after;
} last_set;  // that was made: neighbours mostly share a history
void forget_readers() {
  reader_sets.assign(1, {});
  last_set = {};
}
bool comes_after(const Access& a, uint32_t agent, uint32_t time) {
  if (a.by) return agent < a.by->known.size() && time <= a.by->known[agent];
  return agent == uint32_t(cur->id) || time <= known(cur->clock, agent);
}
uint32_t with_reader(uint32_t set, const Access& a) {
  const Reader me = a.by ? Reader{a.by->agent, a.by->time} : Reader{uint32_t(cur->id), now};
  if (last_set.before == set && last_set.agent == me.agent && last_set.time == me.time && last_set.after)
    return last_set.after;
  std::vector<Reader> readers;
  for (const Reader& r : reader_sets[set]) {
    if (r.agent == me.agent && r.time == me.time) return set;
    // Of an agent that works on its own whoever knows of a later read knows of the earlier ones.
    if (r.agent != me.agent && !comes_after(a, r.agent, r.time)) readers.push_back(r);
  }
  readers.push_back(me);
  reader_sets.push_back(std::move(readers));
  last_set = {set, me.agent, me.time, uint32_t(reader_sets.size() - 1)};
  return last_set.after;
}
const char* proxy(const Access& a) { return a.by ? "the async proxy " : ""; }
// The last write of a cell against an access that `does` something to it.
__attribute__((cold, noinline)) void not_after_write(const Cell& c, size_t g, size_t byte, const Access& a,
                                                     bool writes) {
  const char* does = writes ? "writes" : "reads";
  if (c.pending)
    report(CP_ASYNC_NOT_WAITED, a.pc, cta->written_at[g],
           "%s%s shared byte %zu while the cp.async of %s to it is in flight", proxy(a), does, byte,
           agent_name(c.agent).c_str());
  else if (!comes_after(a, c.agent, c.written) && !is_thread(c.agent))
    report(ASYNC_NOT_WAITED, a.pc, cta->written_at[g],
           "%s%s shared byte %zu, which is written by %s with no wait between", proxy(a), does, byte,
           agent_name(c.agent).c_str());
  else if (!comes_after(a, c.agent, c.written))
    report(writes ? RACE_WAW : RACE_RAW, a.pc, cta->written_at[g],
           "%s%s shared byte %zu, written by %s with no barrier between", proxy(a), does, byte,
           agent_name(c.agent).c_str());
  else
    report(PROXY_FENCE_MISSING, a.pc, cta->written_at[g],
           "the async proxy %s shared byte %zu, written by the generic proxy (%s) with no fence_proxy_async "
           "between",
           does, byte, agent_name(c.agent).c_str());
}
bool follows_write(const Cell& c, const Access& a) {
  if (c.pending || !comes_after(a, c.agent, c.written)) return false;
  return !a.by || c.async || c.written <= a.by->proxied[c.agent];
}
void read_clocked(Cell& c, size_t g, const Access& a) {
  const size_t byte = std::max(a.offset, byte_of(g));
  if (c.written < block_start)
    report(UNINITIALISED, a.pc, 0, "%sreads shared byte %zu, which nothing has written in this block",
           proxy(a), byte);
  else if (!follows_write(c, a))
    not_after_write(c, g, byte, a, false);
  c.readers = with_reader(c.readers, a);
}
void write_clocked(Cell& c, size_t g, const Access& a) {
  const size_t byte = std::max(a.offset, byte_of(g));
  bool over_own_store = false;
  if (c.written >= block_start) {
    const bool both_atomic = a.atomic && c.atomic && is_thread(c.agent);
    if (!both_atomic && !follows_write(c, a)) {
      if (!a.by && !c.pending && is_thread(c.agent))
        overwrite(c, g, byte, a);
      else
        not_after_write(c, g, byte, a, true);
    }
    // An atomic after an own store with no release between leaves it a store: others must come after that
    // too.
    over_own_store = a.atomic && !c.atomic && c.agent == uint32_t(cur->id) &&
                     c.written > known(cur->clock, cur->id);
  } else if (a.reads) {
    report(UNINITIALISED, a.pc, 0, "adds to shared byte %zu, which nothing has written in this block", byte);
  }
  for (const Reader& r : reader_sets[c.readers])
    if (!comes_after(a, r.agent, r.time) && (a.by || r.agent != uint32_t(cur->id))) {
      report(RACE_WAR, a.pc, cta->read_at[g], "%swrites shared byte %zu, which %s %s with no %s between",
             proxy(a), byte, agent_name(r.agent).c_str(), is_thread(r.agent) ? "has read" : "reads",
             is_thread(r.agent) ? "barrier" : "wait");
      break;
    }
  c.written = a.by ? a.by->time : now, c.agent = a.by ? a.by->agent : cur->id;
  c.async = a.by != nullptr, c.pending = a.async, c.atomic = a.atomic && !over_own_store;
  c.readers = 0;
}
// Plain accesses to an mbarrier mean nothing.
void check_mbarriers(const Access& a, bool writes) {
  for (size_t slot = a.offset / 8; slot <= (a.offset + a.bytes - 1) / 8; ++slot)
    if (cta->mbarrier_at[slot]) {
      report(MBARRIER_MISUSE, a.pc, 0, "%s%s shared byte %zu, which is an mbarrier", proxy(a),
             writes ? "writes" : "reads", slot * 8);
      return;
    }
}
template <bool WRITE>
void check_shared(const Access& a) {
  if (a.offset >= SMEM_CAP || a.offset + a.bytes > smem_bytes) {
    report(OOB_SHARED, a.pc, 0, "%s bytes [%zd, %zd) of %zu bytes of shared memory",
           WRITE ? "writes" : "reads", (ssize_t)a.offset, (ssize_t)(a.offset + a.bytes), smem_bytes);
    return;
  }
  const size_t bits = a.offset | a.bytes, region = a.offset / REGION;
  if (region != (a.offset + a.bytes - 1) / REGION) {  // long, or misaligned
    const size_t here = (region + 1) * REGION - a.offset;
    check_shared<WRITE>({a.offset, here, a.pc, a.atomic, a.async, a.reads, a.by});
    return check_shared<WRITE>({a.offset + here, a.bytes - here, a.pc, a.atomic, a.async, a.reads, a.by});
  }
  if (bits & ((size_t(1) << granule_shift[region]) - 1)) refine(region, __builtin_ctzll(bits));
  if (clocks && !cta->mbarrier_at.empty()) check_mbarriers(a, WRITE);
  const Warp& w = warps[cur->warp];
  Cell* const shadow = cta->shadow;
  uint32_t* const at = WRITE ? cta->written_at : cta->read_at;
  const size_t first = cell_of(a.offset), last = cell_of(a.offset + a.bytes - 1);
  const uint32_t pc = offset_of(a.pc);
  auto touch = [&](size_t g) __attribute__((always_inline)) {
    if (__builtin_expect(clocks, 0))
      WRITE ? write_clocked(shadow[g], g, a) : read_clocked(shadow[g], g, a);
    else
      WRITE ? write_cell(shadow[g], g, a, w) : read_cell(shadow[g], g, a, w);
  };
  if (first == last) {
    touch(first);
    at[first] = pc;
    return;
  }
  const Cell before = shadow[first];
  touch(first);
  const Cell after = shadow[first];
  at[first] = pc;
  for (size_t g = first + 1; g <= last; ++g) {
    if (!std::memcmp(&shadow[g], &before, sizeof before))
      shadow[g] = after;  // neighbours mostly share a history
    else
      touch(g);
    at[g] = pc;
  }
}

}  // namespace
}  // namespace cpucuda
