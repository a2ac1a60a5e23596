// TMA and the other copies that go on by themselves: issued by a thread, done some time later.
//
// When is drawn by the run's landing policy. A copy's accesses are judged when it is issued, against what its
// thread knows then; the bytes move later, row by row, and each row's bytes are taken from what its mbarrier
// waits for. What a thread wrote and the copy reads, or overwrites, must lie before a fence of the proxies.
// Source: PTX ISA, "cp.async.bulk.tensor", "Tensor swizzling modes", "st.async".
#pragma once
#include "mbarriers.h"

namespace cpucuda {
namespace {

constexpr uint32_t SHARED_BASE = 1024;  // where dynamic shared memory starts on Hopper: 1 KB is the system's

struct Copy {
  enum { LOAD, STORE, REMOTE } kind;
  TensorMap map;  // LOAD and STORE
  int x, y, z;
  Block* cta;  // in whose memory `offset` is
  size_t offset;
  Mbarrier* bar;   // null: STORE
  uint32_t phase;  // of the mbarrier when it was issued
  uint32_t rows, done;
  uint32_t time;    // of its agent
  uint32_t number;  // of the thread's stores
  Fiber* thread;
  Pc pc;
  unsigned char bytes[16];  // REMOTE: from registers,
  size_t from, length;      // or so many from the thread's own shared memory
  uint32_t row_bytes() const { return kind == REMOTE ? length : map.box[0] * 2; }
};
std::deque<Copy> copies;  // in flight; in a schedule that is not random the oldest first

int swizzle_bits(uint64_t mode) { return mode ? 4 - int(mode) : 0; }  // address bits that are XORed
uint32_t swizzled(uint32_t address, uint64_t mode) {
  return address ^ (address >> 7 & ((1u << swizzle_bits(mode)) - 1)) << 4;
}
void report_wrong_phase(const Copy& c, uint32_t bytes) {
  on_behalf(c.thread, [&] {
    report(EXPECT_TX_MISMATCH, c.pc, 0,
           "%u bytes of a copy that was issued in phase %u of the mbarrier at shared byte %zu arrive in "
           "phase %u: fewer "
           "bytes were expected than come",
           bytes, c.phase, c.bar->offset, c.bar->phase);
  });
}
void arrived(Copy& c, uint32_t bytes) {
  Mbarrier& m = *c.bar;
  if (m.phase != c.phase) report_wrong_phase(c, bytes);
  m.landed = std::max(m.landed, c.time);
  m.bytes -= bytes;
  perhaps_end_phase(m);
}
void move_row(Copy& c, uint32_t row) {
  const TensorMap& map = c.map;
  const int64_t y = int64_t(c.y) + row, z = c.z;
  for (uint32_t column = 0; column < map.box[0]; column += 8) {  // 16 bytes: the swizzle keeps them together
    const uint32_t linear = uint32_t(c.offset) + SHARED_BASE + (row * map.box[0] + column) * 2;
    unsigned char* at = c.cta->smem + swizzled(linear, map.swizzle) - SHARED_BASE;
    for (uint32_t i = 0; i < 8; ++i, at += 2) {
      const int64_t x = int64_t(c.x) + column + i;
      const bool is_inside = x >= 0 && y >= 0 && z >= 0 && x < int64_t(map.size[0]) &&
                             y < int64_t(map.size[1]) && z < int64_t(map.size[2]);
      unsigned char* global = map.base + (is_inside ? x * 2 + y * map.pitch[0] + z * map.pitch[1] : 0);
      if (c.kind == Copy::LOAD && is_inside)
        std::memcpy(at, global, 2);
      else if (c.kind == Copy::LOAD)
        std::memset(at, 0, 2);
      else if (is_inside)
        std::memcpy(global, at, 2);
    }
  }
}
void advance(Copy& c, uint32_t rows) {
  for (const uint32_t end = std::min(c.rows, c.done + rows); c.done < end; ++c.done) {
    if (c.kind != Copy::REMOTE) {
      move_row(c, c.done);
      if (c.kind == Copy::LOAD) arrived(c, c.row_bytes());
    } else {
      std::memcpy(c.cta->smem + c.offset, c.from == SMEM_CAP ? c.bytes : c.thread->cta->smem + c.from,
                  c.length);
      arrived(c, c.row_bytes());
    }
  }
}
void advance(size_t index, uint32_t rows) {
  Copy copy = copies[index];  // what it wakes may issue others
  advance(copy, rows);
  if (copy.done < copy.rows) {
    copies[index].done = copy.done;
    return;
  }
  if (config.random) {  // which one comes next is drawn
    copies[index] = copies.back();
    copies.pop_back();
  } else {
    copies.erase(copies.begin() + index);
  }
  if (copy.kind == Copy::STORE) wake(&copies);
}
bool land_something() {
  if (copies.empty()) return false;
  const size_t index = config.random ? rnd() % copies.size() : 0;
  const uint32_t left = copies[index].rows - copies[index].done;
  advance(index, config.landing == ROWS ? 1 + rnd() % left : left);
  return true;
}
void start(Copy c) {
  if (c.kind != Copy::STORE && (config.random ? rnd() & 1 : true))  // in flight it is neither old nor new
    std::memset(c.cta->smem + c.offset, 0xff, c.kind == Copy::LOAD ? c.map.box_bytes() : c.length);
  copies.push_back(c);
  if (config.landing == AT_ONCE) advance(copies.size() - 1, c.rows);
}
void check_map(const TensorMap* map, Pc pc) {
  if ((uintptr_t)map >= PAGE && map->magic == TensorMap::MAGIC) return;  // below it are null and the like
  report(MISUSE, pc, 0, "TMA by something that is no tensor map");
  abort_block();
}
// The rows of a box that lie in the tensor, as the running thread reads or writes them.
template <bool WRITE>
void check_rows(const TensorMap& map, int x, int y, int z, Pc pc) {
  if (z < 0 || uint64_t(z) >= map.size[2]) return;
  const int64_t first = std::max(0, x), end = std::min<int64_t>(int64_t(x) + map.box[0], map.size[0]);
  for (int64_t row = std::max(0, y);
       first < end && row < std::min<int64_t>(int64_t(y) + map.box[1], map.size[1]); ++row)
    check_global<WRITE>((uintptr_t)map.base + first * 2 + row * map.pitch[0] + z * map.pitch[1],
                        (end - first) * 2, pc, false, false, true);
}
// The place of a box in shared memory: aligned, and all of it there.
size_t box_place(const void* p, const TensorMap& map, Pc pc) {
  const size_t offset = (uintptr_t)p - (uintptr_t)cta->smem;
  if (offset >= SMEM_CAP) {
    report(MISUSE, pc, 0, "TMA to or from memory that is not shared");
    abort_block();
  }
  if (offset % 128) {
    report(MISALIGNED, pc, 0, "TMA at shared byte %zu: not aligned to 128", offset);
    abort_block();
  }
  if (offset + map.box_bytes() > smem_bytes) {
    report(OOB_SHARED, pc, 0, "TMA of shared bytes [%zu, %zu) of %zu", offset, offset + map.box_bytes(),
           smem_bytes);
    abort_block();
  }
  return offset;
}
// The bank model of a box: TMA moves 128 bytes at a time.
void box_banks(size_t offset, const TensorMap& map, bool store, Pc pc) {
  uint32_t address[WARP];
  for (uint32_t at = 0; at < map.box_bytes(); at += 128) {
    unsigned mask = 0;
    for (uint32_t chunk = 0; chunk < 8 && at + chunk * 16 < map.box_bytes(); ++chunk) {
      address[chunk] = swizzled(uint32_t(offset) + SHARED_BASE + at + chunk * 16, map.swizzle);
      mask |= 1u << chunk;
    }
    request(address, mask, 16, offset_of(pc), store);
  }
}
void must_run(Block& peer, Pc pc);  // clusters.h

}  // namespace

void tma_load(void* dst, const TensorMap* map, const uint64_t* bar, int x, int y, int z, unsigned ranks) {
  const Pc pc = CALLER;
  if (overwrites) settle_overwrite();
  check_map(map, pc);
  const size_t offset = box_place(dst, *map, pc);
  check_rows<false>(*map, x, y, z, pc);
  box_banks(offset, *map, true, pc);
  const uint32_t time = now++;
  for (int rank = 0; rank < nblocks; ++rank) {
    if (ranks ? !(ranks >> rank & 1) : rank != cur->cta->rank) continue;
    Block& target = blocks[rank];
    must_run(target, pc);
    Mbarrier& m = mbarrier_of(target, (uintptr_t)bar - (uintptr_t)cta->smem, "a TMA load signals", pc);
    if (!m.fenced)
      report(PROXY_FENCE_MISSING, pc, 0,
             "a TMA load signals the mbarrier at shared byte %zu, whose init no fence_mbarrier_init has made "
             "visible",
             m.offset);
    const Actor actor{m.agent, time, cur->clock.known, cur->clock.proxied};
    within(target, [&] { check_shared<true>({offset, map->box_bytes(), pc, false, false, false, &actor}); });
    note_signal(m, pc);
    start({Copy::LOAD,
           *map,
           x,
           y,
           z,
           &target,
           offset,
           &m,
           m.phase,
           map->box[1],
           0,
           time,
           0,
           cur,
           pc,
           {},
           0,
           0});
  }
  if (ranks >> nblocks) {
    report(MISUSE, pc, 0, "a multicast to blocks %x of a cluster of %d", ranks, nblocks);
    abort_block();
  }
}
void tma_prefetch(const TensorMap* map) { check_map(map, CALLER); }
void tma_store(const TensorMap* map, const void* src, int x, int y, int z) {
  const Pc pc = CALLER;
  if (overwrites) settle_overwrite();
  check_map(map, pc);
  const size_t offset = box_place(src, *map, pc);
  box_banks(offset, *map, false, pc);
  if (!cur->store_agent) {
    cur->store_agent = new_agent("a TMA store of thread", cur->id % (nwarps * WARP));
    new_agent("a TMA store of thread", cur->id % (nwarps * WARP));
  }
  check_rows<true>(*map, x, y, z, pc);
  const uint32_t time = now++;
  const Actor actor{uint32_t(cur->store_agent), time, cur->clock.known, cur->clock.proxied};
  check_shared<false>({offset, map->box_bytes(), pc, false, false, false, &actor});
  cur->store_pc = pc;
  cur->store_times.push_back(time);
  start({Copy::STORE,
         *map,
         x,
         y,
         z,
         cta,
         offset,
         nullptr,
         0,
         map->box[1],
         0,
         time,
         uint32_t(cur->store_times.size()),
         cur,
         pc,
         {},
         0,
         0});
}
void tma_store_commit() { cur->store_groups.push_back(cur->store_times.size()); }
namespace {

// All but the last `keep` groups of this thread's stores; until they are complete, or have read their source.
void wait_for_stores(int keep, bool complete, Pc pc) {
  if (overwrites) settle_overwrite();
  if (int(cur->store_groups.size()) <= keep) return;
  const uint32_t last = cur->store_groups[cur->store_groups.size() - 1 - keep];
  const auto is_left = [&](const Copy& c) {
    return c.kind == Copy::STORE && c.thread == cur && c.number <= last;
  };
  while (std::any_of(copies.begin(), copies.end(), is_left)) wait_on(&copies, A_BULK_GROUP, last, pc);
  if (last) learn(cur->clock, cur->store_agent, cur->store_times[last - 1]);
  if (last && complete) learn(cur->clock, cur->store_agent + 1, cur->store_times[last - 1]);
  cur->stores_waited = std::max(cur->stores_waited, last);
}

}  // namespace

void tma_store_wait(int keep) { wait_for_stores(keep, true, CALLER); }
void tma_store_wait_read(int keep) { wait_for_stores(keep, false, CALLER); }

}  // namespace cpucuda
