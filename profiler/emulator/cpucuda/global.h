// The shadow of the global memory that kernels write: the output, and the library's own variables.
//
// It works as that of shared memory does, but outlives the block: what another block did comes before an
// access only where it was published (order.h), whichever of the two ran first here. What an earlier launch
// did is over.
#pragma once
#include "shadow.h"

namespace cpucuda {
namespace {

// What one granule remembers: the last store, and of atomics and of reads the last and one with no order to
// it, of another block if there was any. Times; 0: never in this run.
struct GlobalCell {
  uint32_t stored, atomic, other_atomic, read, other_read;
  uint32_t written_at, read_at;  // code offsets of the last
  uint16_t storer, atomic_by, other_atomic_by, reader, other_reader;
  uint16_t by_tma;  // the last store
};
static_assert(sizeof(GlobalCell) == 40);

struct GlobalRegion {  // REGION bytes. Granules are as those of shared memory
  GlobalCell* cells;   // null: not touched in this run
  int shift;
};
struct Tracked {
  uintptr_t lo = 0, hi = 0;
  bool starts_unset = true;  // reading what no kernel has written is a mistake
  int shift = 4;             // that new regions start with: the finest that this memory has needed
  std::vector<GlobalRegion> regions;
};
std::vector<Tracked> tracked;  // the library's variables, then the buffers that may be written
uint32_t launch_start = 1;

// Cells come from chunks that stay for the next run. Memory that the limit leaves none for is not checked.
constexpr size_t CHUNK_CELLS = 1 << 15, MOST_CHUNKS = 512;  // 1.25 MiB each: enough for 25 MB of halves
std::vector<GlobalCell*> chunks;
size_t chunks_used, cells_used;
GlobalCell* new_cells(size_t count) {
  if (!chunks_used || cells_used + count > CHUNK_CELLS) {
    if (chunks_used == MOST_CHUNKS) return nullptr;
    if (chunks_used == chunks.size()) chunks.push_back((GlobalCell*)map(CHUNK_CELLS * sizeof(GlobalCell)));
    ++chunks_used, cells_used = 0;
  }
  GlobalCell* cells = chunks[chunks_used - 1] + cells_used;
  cells_used += count;
  std::memset(cells, 0, count * sizeof *cells);
  return cells;
}
void forget_global() {
  tracked.assign(1, {lib_data_lo, lib_data_hi, false, 4, {}});
  chunks_used = cells_used = 0;
}
// The region's cells with granules of at most 1 << shift bytes; null where there is no room for more.
GlobalCell* region_cells(Tracked& t, GlobalRegion& region, int shift) {
  if (region.cells && region.shift <= shift) return region.cells;
  t.shift = std::min(t.shift, shift);
  GlobalCell* cells = new_cells(REGION >> t.shift);
  if (cells && region.cells)  // each new cell starts as a copy of the one it was part of
    for (size_t i = 0; i < REGION >> t.shift; ++i) cells[i] = region.cells[i >> (region.shift - t.shift)];
  region = {cells, t.shift};
  return cells;
}

bool before(const Warp& w, int thread, uint32_t time) {
  if (time < launch_start) return true;
  return time < block_start ? fenced && published(w, thread, time) : ordered(w, thread, time);
}
// "thread 3 (warp 0)", and which block's if not of the running one.
std::string who(int thread, uint32_t time) {
  char text[100];
  if (time >= block_start) {
    return agent_name(thread) + " with no barrier between";
  } else {
    const uint3 b = block_ids[std::upper_bound(block_starts.begin(), block_starts.end(), time) -
                              block_starts.begin() - 1];
    snprintf(text, sizeof text, "thread %d of block (%u,%u,%u), and blocks run in any order", thread, b.x,
             b.y, b.z);
  }
  return text;
}
struct GlobalAccess {
  Tracked& memory;
  size_t offset;
  Pc pc;
  bool atomic, reads, by_tma;
  const void* place;  // of the whole access
  size_t bytes;
};
// "byte 8 of the output", or of a variable of the library.
std::string memory_name(const GlobalAccess& a) {
  if (a.memory.starts_unset) return "byte " + std::to_string(a.offset) + " of the output";
  const uintptr_t place = a.memory.lo + a.offset;
  Dl_info info;
  const ElfW(Sym) * symbol;
  if (dladdr1((const void*)place, &info, (void**)&symbol, RTLD_DL_SYMENT) && info.dli_sname &&
      place - (uintptr_t)info.dli_saddr < symbol->st_size)
    return "byte " + std::to_string(place - (uintptr_t)info.dli_saddr) + " of " + info.dli_sname;
  return "a variable of the device";
}
__attribute__((cold, noinline)) void report_global(Kind kind, const GlobalAccess& a, const char* does,
                                                   const char* done, uint32_t other_pc, int thread,
                                                   uint32_t time) {
  report(kind, a.pc, other_pc, "%s %s, %s by %s", does, memory_name(a).c_str(), done,
         who(thread, time).c_str());
}
__attribute__((cold, noinline)) void overwrite(const GlobalCell& c, const GlobalAccess& a) {
  const uint32_t other_pc = c.atomic ? 0 : c.written_at;
  if (a.atomic || a.bytes > sizeof Overwrite::before)
    return report_global(RACE_GLOBAL_WAW, a, "changes", "written", other_pc, c.storer, c.stored);
  if (cur->overwrite.bytes) return;  // another byte of this access
  remember_overwrite(RACE_GLOBAL_WAW, a.place, a.bytes, a.pc, other_pc,
                     "writes " + memory_name(a) + ", written with another value by " + who(c.storer, c.stored));
}
// Of two earlier accesses with no order to this one, the one of another block, else of another warp, is kept.
void keep_other(const Warp& w, uint32_t last, uint16_t thread, uint32_t& other, uint16_t& other_thread) {
  if (other && before(w, other_thread, other)) other = 0;
  if (!last || before(w, thread, last)) return;
  if (other && (other < block_start || (last >= block_start && thread / WARP == cur->warp))) return;
  other = last, other_thread = thread;
}
__attribute__((noinline)) void read_other(GlobalCell& c, const GlobalAccess& a, const Warp& w) {
  if (!c.stored && !c.atomic && a.memory.starts_unset)
    report(UNINITIALISED_GLOBAL, a.pc, 0, "reads byte %zu of the output, which nothing has written yet",
           a.offset);
  if (!before(w, c.storer, c.stored))
    report_global(RACE_GLOBAL_RAW, a, "reads", "written", c.atomic ? 0 : c.written_at, c.storer, c.stored);
  else if (!before(w, c.atomic_by, c.atomic))
    report_global(RACE_GLOBAL_RAW, a, "reads", "changed", c.written_at, c.atomic_by, c.atomic);
  else if (!before(w, c.other_atomic_by, c.other_atomic))
    report_global(RACE_GLOBAL_RAW, a, "reads", "changed", 0, c.other_atomic_by, c.other_atomic);
  keep_other(w, c.read, c.reader, c.other_read, c.other_reader);
}
// A store by TMA and an access by a thread, or the other way about: order alone does not do.
__attribute__((cold, noinline)) void check_proxies(const GlobalCell& c, const GlobalAccess& a, const Warp& w,
                                                   bool writes) {
  if (c.stored < block_start || !before(w, c.storer, c.stored)) return;  // another block's: see docs/hopper.md
  const std::string place = memory_name(a), by = agent_name(c.storer);
  if (c.by_tma && known(cur->clock, fibers[c.storer].store_agent + 1) < c.stored)
    report(ASYNC_NOT_WAITED, a.pc, c.written_at,
           "%s %s, which a TMA store of %s writes with no tma_store_wait between", writes ? "writes" : "reads",
           place.c_str(), by.c_str());
  else if (!c.by_tma)
    report(PROXY_FENCE_MISSING, a.pc, c.written_at,
           "the async proxy reads %s, written by the generic proxy (%s): fence_proxy_async is one of shared "
           "memory alone",
           place.c_str(), by.c_str());
}
inline void read_global(GlobalCell& c, const GlobalAccess& a, const Warp& w) {
  if (__builtin_expect(c.by_tma != a.by_tma || a.by_tma, 0)) check_proxies(c, a, w, false);
  const uint16_t id = cur->id;
  const bool own = c.stored >= block_start && c.storer == id && !c.atomic && !c.other_read &&
                   (!c.read || (c.read >= block_start && c.reader == id));
  if (!own) read_other(c, a, w);
  c.read = now, c.reader = id, c.read_at = offset_of(a.pc);
}
__attribute__((noinline)) void write_other(GlobalCell& c, const GlobalAccess& a, const Warp& w) {
  const char* does = a.atomic ? "changes" : "writes";
  if (!c.stored && !c.atomic && a.reads && a.memory.starts_unset)
    report(UNINITIALISED_GLOBAL, a.pc, 0, "adds to byte %zu of the output, which nothing has written yet",
           a.offset);
  if (!before(w, c.storer, c.stored)) {
    overwrite(c, a);
  } else if (!a.atomic) {
    // A store after an atomic of its own block comes after all that the atomic did: so a counter is set back.
    const bool own = c.atomic >= block_start;
    if (!before(w, c.atomic_by, c.atomic))
      report_global(RACE_GLOBAL_WAW, a, does, "changed", c.written_at, c.atomic_by, c.atomic);
    else if (!before(w, c.other_atomic_by, c.other_atomic) && !(own && c.other_atomic < block_start))
      report_global(RACE_GLOBAL_WAW, a, does, "changed", 0, c.other_atomic_by, c.other_atomic);
  }
  if (!before(w, c.reader, c.read))
    report_global(RACE_GLOBAL_WAR, a, does, "read", c.read_at, c.reader, c.read);
  else if (!before(w, c.other_reader, c.other_read))
    report_global(RACE_GLOBAL_WAR, a, does, "read", 0, c.other_reader, c.other_read);
  if (a.atomic) keep_other(w, c.atomic, c.atomic_by, c.other_atomic, c.other_atomic_by);
}
inline void write_global(GlobalCell& c, const GlobalAccess& a, const Warp& w) {
  if (__builtin_expect(c.by_tma && !a.by_tma, 0)) check_proxies(c, a, w, true);
  if (c.stored || c.read || c.atomic || a.atomic) write_other(c, a, w);
  if (a.atomic)
    c.atomic = now, c.atomic_by = cur->id;
  else
    c.stored = now, c.storer = cur->id, c.atomic = c.other_atomic = 0;
  c.written_at = offset_of(a.pc), c.by_tma = a.by_tma;
  c.read = c.other_read = 0;
}
template <bool WRITE>
void check_tracked(Tracked& t, size_t offset, size_t bytes, Pc pc, bool atomic, bool reads, bool by_tma) {
  const void* place = (const void*)(t.lo + offset);
  if (t.regions.empty()) t.regions.resize((t.hi - t.lo + REGION - 1) / REGION);
  const Warp& w = warps[cur->warp];
  for (size_t end = offset + bytes; offset < end;) {
    const size_t here = std::min(end, (offset / REGION + 1) * REGION), within = offset % REGION;
    GlobalRegion& region = t.regions[offset / REGION];
    const int shift = std::min(4, __builtin_ctzll(within | (here - offset) | 16));
    if (GlobalCell* cells = region_cells(t, region, shift))
      for (size_t i = within >> region.shift; i <= (within + here - offset - 1) >> region.shift; ++i) {
        const size_t byte = std::max(offset, offset - within + (i << region.shift));
        const GlobalAccess a{t, byte, pc, atomic, reads, by_tma, place, bytes};
        WRITE ? write_global(cells[i], a, w) : read_global(cells[i], a, w);
      }
    offset = here;
  }
}

// Where an address lies that is in no argument: from the nearest one, as addresses differ from run to run.
std::string place_of(uintptr_t a) {
  if (a < PAGE) return "at address " + std::to_string(a) + ": a null pointer";
  const Range* nearest = nullptr;
  size_t least = 1 << 30;
  for (const Range& r : buffers) {
    const size_t distance = a < r.lo ? r.lo - a : a < r.hi ? 0 : a - r.hi;
    if (distance < least) nearest = &r, least = distance;
  }
  if (!nearest) return "at an address that no argument is near to";
  const std::string argument = " argument " + std::to_string(nearest->argument);
  if (a >= nearest->lo && a < nearest->hi) return "that end past" + argument;
  return std::to_string(least) + " bytes " + (a < nearest->lo ? "before" : "past the end of") + argument;
}

template <bool WRITE>
__attribute__((noinline)) void check_global(uintptr_t a, size_t bytes, Pc pc, bool atomic, bool reads,
                                            bool by_tma = false) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Range& r = buffers[i];
    if (a < r.lo || a + bytes > r.hi || (WRITE && !r.tracked)) continue;
    if (r.tracked) check_tracked<WRITE>(tracked[r.tracked], a - r.lo, bytes, pc, atomic, reads, by_tma);
    return;
  }
  if (a >= lib_lo && a < lib_hi) {  // __constant__ and other globals of the source
    if (a >= lib_data_lo && a + bytes <= lib_data_hi)
      check_tracked<WRITE>(tracked[0], a - lib_data_lo, bytes, pc, atomic, reads, by_tma);
    return;
  }
  if (!WRITE && a - (host_stack - (1 << 20)) < (2 << 20)) return;  // what the launcher passes, by LAUNCH
  for (const Range& r : buffers)
    if (WRITE && a >= r.lo && a + bytes <= r.hi) {
      report(OOB_GLOBAL, pc, 0, "writes %zu bytes into argument %d, an input", bytes, r.argument);
      abort_block();
    }
  report(OOB_GLOBAL, pc, 0, "%s %zu bytes %s", WRITE ? "writes" : "reads", bytes, place_of(a).c_str());
  abort_block();  // the access itself would crash or spoil the process
}

}  // namespace
}  // namespace cpucuda
