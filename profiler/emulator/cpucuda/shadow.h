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
    shadow[base + i] = shadow[from];
    written_at[base + i] = written_at[from];
    read_at[base + i] = read_at[from];
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

struct Access {
  size_t offset, bytes;
  Pc pc;
  bool atomic, async;
  bool reads = atomic;  // of an atomic: whether it computes with the old value, as all but atomicExch do
};
__attribute__((cold, noinline)) void slow_read(const Cell& c, size_t g, const Access& a, const Warp& w) {
  const size_t byte = std::max(a.offset, byte_of(g));
  if (c.written < block_start)
    report(UNINITIALISED, a.pc, 0, "reads shared byte %zu, which nothing has written in this block", byte);
  else if (c.pending)
    report(ASYNC_NOT_WAITED, a.pc, written_at[g],
           "reads shared byte %zu while the cp.async of thread %d to it is in flight", byte, c.writer);
  else if (!ordered(w, c.writer, c.written))
    report(RACE_RAW, a.pc, written_at[g],
           "reads shared byte %zu, written by thread %d (warp %d) with no barrier between", byte, c.writer,
           c.writer / WARP);
}
inline void read_cell(Cell& c, size_t g, const Access& a, const Warp& w) {
  if (c.written < block_start || c.pending || (c.written >= barrier && !ordered(w, c.writer, c.written)))
    slow_read(c, g, a, w);
  const int id = cur->id;
  if (c.read < barrier) {
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
  snprintf(text, sizeof text, "writes shared byte %zu, written by thread %d (warp %d) with no barrier between",
           byte, c.writer, c.writer / WARP);
  if (a.atomic || a.async || c.atomic || a.bytes > sizeof Overwrite::before)
    report(RACE_WAW, a.pc, written_at[g], "%s", text);
  else if (!cur->overwrite.bytes)  // else another byte of this access
    remember_overwrite(RACE_WAW, smem + a.offset, a.bytes, a.pc, written_at[g],
                       std::string(text) + " and with another value");
}
__attribute__((cold, noinline)) void slow_write(const Cell& c, size_t g, const Access& a, const Warp& w) {
  const size_t byte = std::max(a.offset, byte_of(g));
  if (c.written >= block_start) {
    if (c.pending)
      report(ASYNC_NOT_WAITED, a.pc, written_at[g],
             "writes shared byte %zu while the cp.async of thread %d to it is in flight", byte, c.writer);
    else if (!ordered(w, c.writer, c.written) && !(a.atomic && c.atomic))
      overwrite(c, g, byte, a);
  } else if (a.reads) {
    report(UNINITIALISED, a.pc, 0, "adds to shared byte %zu, which nothing has written in this block", byte);
  }
  const bool others = c.many && c.reader == cur->id && c.read >= std::max(w.synced, barrier) && !w.partial;
  if (!ordered(w, c.reader, c.read) || others)
    report(RACE_WAR, a.pc, read_at[g], "writes shared byte %zu, read by %s with no barrier between", byte,
           c.reader / WARP == cur->warp ? "another lane of its warp" : "another warp");
  else if (c.other_read >= barrier && c.other_warp != cur->warp)
    report(RACE_WAR, a.pc, 0, "writes shared byte %zu, read by warp %d with no barrier between", byte,
           c.other_warp);
}
inline void write_cell(Cell& c, size_t g, const Access& a, const Warp& w) {
  if (c.written >= barrier || c.read >= barrier || c.other_read >= barrier || c.pending || a.atomic)
    slow_write(c, g, a, w);
  // An atomic after an own store with no barrier between leaves it a store: others must come after that too.
  const bool over_own_store = a.atomic && !c.atomic && c.written >= std::max(barrier, w.synced) &&
                              c.writer == cur->id && !w.partial;
  c.written = now, c.writer = cur->id, c.atomic = a.atomic && !over_own_store, c.pending = a.async;
  c.read = c.other_read = 0, c.many = 0;
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
    check_shared<WRITE>({a.offset, here, a.pc, a.atomic, a.async, a.reads});
    return check_shared<WRITE>({a.offset + here, a.bytes - here, a.pc, a.atomic, a.async, a.reads});
  }
  if (bits & ((size_t(1) << granule_shift[region]) - 1)) refine(region, __builtin_ctzll(bits));
  const Warp& w = warps[cur->warp];
  const size_t first = cell_of(a.offset), last = cell_of(a.offset + a.bytes - 1);
  const uint32_t pc = offset_of(a.pc);
  auto touch = [&](size_t g) __attribute__((always_inline)) {
    WRITE ? write_cell(shadow[g], g, a, w) : read_cell(shadow[g], g, a, w);
  };
  if (first == last) {
    touch(first);
    (WRITE ? written_at : read_at)[first] = pc;
    return;
  }
  const Cell before = shadow[first];
  touch(first);
  const Cell after = shadow[first];
  (WRITE ? written_at : read_at)[first] = pc;
  for (size_t g = first + 1; g <= last; ++g) {
    if (!std::memcmp(&shadow[g], &before, sizeof before))
      shadow[g] = after;  // neighbours mostly share a history
    else
      touch(g);
    (WRITE ? written_at : read_at)[g] = pc;
  }
}

}  // namespace
}  // namespace cpucuda
