// The shadow of shared memory, which knows who touched what and when; the check of every access.
#pragma once
#include "banks.h"
#include "fibers.h"

namespace cpucuda {
namespace {

// Whether what `thread` did at `time` happened before what the running thread does now. A barrier of the
// block orders all threads, __syncwarp the lanes that took part; shuffles order nothing.
bool ordered(const Warp& w, int thread, uint32_t time) {
  if (time < barrier || thread == cur->id) return true;
  if (thread / WARP != cur->warp) return false;
  return time < w.synced || (w.partial && time < w.seen[cur->lane][thread % WARP]);
}

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

struct Access {
  size_t offset, bytes;
  Pc pc;
  bool atomic, async;
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
__attribute__((cold, noinline)) void slow_write(const Cell& c, size_t g, const Access& a, const Warp& w) {
  const size_t byte = std::max(a.offset, byte_of(g));
  if (c.written >= block_start) {
    if (c.pending && !a.async)
      report(ASYNC_NOT_WAITED, a.pc, written_at[g],
             "writes shared byte %zu while the cp.async of thread %d to it is in flight", byte, c.writer);
    else if (!ordered(w, c.writer, c.written) && !(a.atomic && c.atomic))
      report(RACE_WAW, a.pc, written_at[g],
             "writes shared byte %zu, written by thread %d (warp %d) with no barrier between", byte, c.writer,
             c.writer / WARP);
  } else if (a.atomic) {
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
  c.written = now, c.writer = cur->id, c.atomic = a.atomic, c.pending = a.async;
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
    check_shared<WRITE>({a.offset, here, a.pc, a.atomic, a.async});
    return check_shared<WRITE>({a.offset + here, a.bytes - here, a.pc, a.atomic, a.async});
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

template <bool WRITE>
__attribute__((noinline)) void check_global(uintptr_t a, size_t bytes, Pc pc) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Range& r = buffers[i];
    if (a >= r.lo && a + bytes <= r.hi && (r.writable || !WRITE)) return;
  }
  if (a >= lib_lo && a < lib_hi) return;                 // __constant__ and other globals of the source
  if (a - (host_stack - (1 << 20)) < (2 << 20)) return;  // the launcher's variables, captured by LAUNCH
  for (const Range& r : buffers)
    if (WRITE && a >= r.lo && a + bytes <= r.hi) {
      report(OOB_GLOBAL, pc, 0, "writes %zu bytes into an input", bytes);
      abort_block();
    }
  report(OOB_GLOBAL, pc, 0, "%s %zu bytes at %p, which no argument points to", WRITE ? "writes" : "reads",
         bytes, (void*)a);
  abort_block();  // the access itself would crash or spoil the process
}

template <bool WRITE>
inline void access(const void* p, size_t bytes, Pc pc, bool aligned = true, bool bank = true,
                   bool atomic = false) {
  if (!cur || quiet) return;
  const uintptr_t a = (uintptr_t)p;
  if (a - cur->stack < STACK) return;
  if (aligned && bytes <= 16 && a & (bytes - 1)) {
    report(MISALIGNED, pc, 0, "%s %zu bytes at %p: not aligned to them", WRITE ? "writes" : "reads", bytes,
           p);
    abort_block();  // as the GPU does
  }
  const size_t offset = a - (uintptr_t)smem;
  if (offset + SMEM_GUARD < SMEM_CAP + 2 * SMEM_GUARD) {
    check_shared<WRITE>({offset, bytes, pc, atomic, false});
    if (bank && offset < SMEM_CAP && bytes <= 16 && !(bytes & (bytes - 1)))
      log_access(offset, bytes, WRITE, pc);
  } else {
    check_global<WRITE>(a, bytes, pc);
  }
  if (config.preempt > 0 && (rnd() >> 11) * 0x1p-53 < config.preempt) yield();
}

}  // namespace
}  // namespace cpucuda
