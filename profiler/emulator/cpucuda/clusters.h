// Named barriers, the pool of registers, and clusters: their barrier and each other's shared memory.
//
// Source: PTX ISA, "bar", "setmaxnreg", "barrier.cluster", "mapa". An address in a block of the cluster is
// its rank + 1 above bit 24, and the address in its shared window below; without a rank it is the own
// block's.
#pragma once
#include "wgmma.h"

namespace cpucuda {
namespace {

constexpr int RANK_SHIFT = 24;
struct {
  uint32_t arrived, generation;
  Clock gathered, done;
} cluster_barrier;
struct RemoteAccess {  // of a thread to another block's memory
  Block* to;
  Fiber* by;
  uint32_t time;
  Pc pc;
};
std::vector<RemoteAccess> remote_accesses;
struct Sent {  // from the shared memory of a thread's block to another one's
  Fiber* by;
  int to;  // rank
  uint32_t agent, time;
  Pc pc;
};
std::vector<Sent> sent;

// Whether the running thread knows that a block of the cluster has started: by its own wait at the cluster's
// barrier, by that of a thread that it comes after, or by what that block did.
bool has_started(const Block& peer) {
  bool is_known = &peer == cur->cta || cur->saw_start;
  for (int b = 0; b < nblocks && !is_known; ++b)
    each_thread(blocks[b], [&](const Fiber& f) {
      const uint32_t time = known(cur->clock, f.id);
      is_known = is_known || (f.saw_start && f.saw_start <= time) || (f.cta == &peer && time);
    });
  return is_known;
}
void must_run(Block& peer, Pc pc) {
  if (!has_started(peer))
    report(PEER_NOT_STARTED, pc, 0,
           "reaches into the block of rank %d, which may not have started: no cluster_wait lies before",
           peer.rank);
  if (!peer.live) {
    report(PEER_EXITED, pc, 0, "reaches into the block of rank %d, which has ended", peer.rank);
    abort_block();
  }
}
// The block and the byte of its shared memory that an address names.
Block& resolve(uint32_t address, uint32_t bytes, size_t& offset, Pc pc) {
  const int rank = address >> RANK_SHIFT ? int(address >> RANK_SHIFT) - 1 : cur->cta->rank;
  offset = (address & ((1u << RANK_SHIFT) - 1)) - SHARED_BASE;
  if (rank >= nblocks || !in_shared_memory(offset, bytes)) {
    report(OOB_SHARED, pc, 0, "an address of shared byte %d of %zu, in block %d of a cluster of %d",
           int(offset), smem_bytes, rank, nblocks);
    abort_block();
  }
  if (offset % bytes) {
    report(MISALIGNED, pc, 0, "%u bytes at shared byte %zu of the block of rank %d: not aligned to them",
           bytes, offset, rank);
    abort_block();
  }
  must_run(blocks[rank], pc);
  return blocks[rank];
}
template <bool WRITE>
void remote_access(uint32_t address, void* to, const void* from, size_t bytes, Pc pc) {
  if (overwrites) settle_overwrite();
  if (__builtin_expect(config.preempt > 0, 0)) perhaps_yield();
  size_t offset;
  Block& block = resolve(address, bytes, offset, pc);
  within(block, [&] { check_shared<WRITE>({offset, bytes, pc, false, false}); });
  if (&block != cur->cta) {
    for (RemoteAccess& r : remote_accesses)
      if (r.to == &block && r.by == cur && r.pc == pc) {
        r.time = now;
        goto known;
      }
    remote_accesses.push_back({&block, cur, now, pc});
  }
known:
  if (WRITE)
    std::memcpy(block.smem + offset, from, bytes);
  else
    std::memcpy(to, block.smem + offset, bytes);
}
Mbarrier& remote_mbarrier(uint32_t address, const char* what, Pc pc) {
  size_t offset;
  Block& block = resolve(address, 8, offset, pc);
  return mbarrier_of(block, offset, what, pc);
}
// Bytes that go to a place in another block, and are counted by the mbarrier beside it.
void send(uint32_t address, uint32_t bar, const void* registers, size_t from, size_t bytes, Pc pc) {
  if (overwrites) settle_overwrite();
  size_t offset;
  Block& block = resolve(address, registers ? bytes : 16, offset, pc);
  if (!in_shared_memory(offset, bytes)) {
    report(OOB_SHARED, pc, 0, "writes shared bytes [%zu, %zu) of %zu", offset, offset + bytes, smem_bytes);
    abort_block();
  }
  Mbarrier& m = remote_mbarrier(bar, "a store signals", pc);
  if (m.cta != &block) {
    report(MBARRIER_MISUSE, pc, 0,
           "stores to the block of rank %d and signals an mbarrier of the block of rank %d", block.rank,
           m.cta->rank);
    abort_block();
  }
  const uint32_t time = now++;
  if (!registers) {  // read by the async proxy; known to be over where the bytes are known to have come
    const Actor reader{m.agent, time, cur->clock.known, cur->clock.proxied};
    check_shared<false>({from, bytes, pc, false, false, false, &reader});
    if (&block != cur->cta) sent.push_back({cur, block.rank, m.agent, time, pc});
  }
  // A store from registers is the generic proxy's: what was read or written there needs no fence.
  const auto& proxied = registers ? cur->clock.known : cur->clock.proxied;
  const Actor writer{m.agent, time, cur->clock.known, proxied};
  within(block, [&] { check_shared<true>({offset, bytes, pc, false, false, false, &writer}); });
  note_signal(m, pc);
  Copy copy{Copy::REMOTE, {}, 0,   0,  0,  &block,   offset, &m, m.phase, 1, 0,
            time,         0,  cur, pc, {}, SMEM_CAP, bytes};
  if (registers)
    std::memcpy(copy.bytes, registers, bytes);
  else
    copy.from = from;
  start(copy);
}
void perhaps_end_cluster_barrier() {
  if (!live || cluster_barrier.arrived < uint32_t(live)) return;
  cluster_barrier.arrived = 0;
  ++cluster_barrier.generation;
  cluster_barrier.done = std::exchange(cluster_barrier.gathered, {});
  for (Mbarrier& m : mbarriers) m.published = m.published || m.publishing;
  wake(&cluster_barrier);
}
void arrive_at_cluster_barrier(bool releases, Pc pc) {
  if (overwrites) settle_overwrite();
  if (cur->cluster_waits) {
    report(MISUSE, pc, 0, "arrives at the barrier of the cluster again with no cluster_wait between");
    abort_block();
  }
  cur->cluster_waits = true, cur->cluster_generation = cluster_barrier.generation;
  if (releases) release_into(cluster_barrier.gathered);
  for (Mbarrier& m : mbarriers) m.publishing = m.publishing || (m.fenced && m.by == cur->id);
  ++cluster_barrier.arrived;
  perhaps_end_cluster_barrier();
}
// A barrier counts whoever comes: an arrival that no order puts behind those of the last round may complete
// that one in place of them.
void must_follow_last_round(const Named& barrier, int id, Pc pc) {
  const int first = cta->first_warp * WARP;
  for (int t = 0; t < nthreads && barrier.generation; ++t)
    if (barrier.came[t] == barrier.generation && first + t != cur->id &&
        barrier.came_at[t] > known(cur->clock, first + t)) {
      report(MISUSE, pc, offset_of(barrier.pc),
             "comes to named barrier %d with no order to the arrival of thread %d, which the round before has "
             "counted",
             id, t);
      return;
    }
}
void meet_at(int id, int threads, bool waits, Pc pc) {
  if (overwrites) settle_overwrite();
  if (id < 1 || id > 15 || threads < WARP || threads % WARP || threads > nwarps * WARP) {
    report(MISUSE, pc, 0,
           "named barrier %d of %d threads: ids are 1 to 15, threads a multiple of 32 of the block's %d", id,
           threads, nthreads);
    abort_block();
  }
  Named& barrier = cta->named[id];
  if (barrier.arrived && barrier.expected != threads) {
    report(MISUSE, pc, offset_of(barrier.pc), "named barrier %d waits for %d threads, and here for %d", id,
           barrier.expected, threads);
    abort_block();
  }
  const int thread = cur->id - cta->first_warp * WARP;
  uint32_t& came = barrier.came[thread];
  if (came == barrier.generation + 1) {
    report(MISUSE, pc, offset_of(barrier.pc), "comes to named barrier %d a second time before it is complete", id);
    abort_block();
  }
  must_follow_last_round(barrier, id, pc);
  came = barrier.generation + 1, barrier.came_at[thread] = now;
  barrier.expected = threads, barrier.pc = pc;
  release_into(barrier.gathered);
  const uint32_t generation = barrier.generation;
  if (++barrier.arrived == threads) {
    barrier.arrived = 0, ++barrier.generation;
    barrier.done = std::exchange(barrier.gathered, {});
    wake(&barrier);
  } else if (waits) {
    while (barrier.generation == generation) wait_on(&barrier, A_NAMED_BARRIER, id, pc);
  }
  if (waits) acquire_from(barrier.done);
}

}  // namespace

uint32_t shared_address(const void* p) { return uint32_t((uintptr_t)p - (uintptr_t)cta->smem) + SHARED_BASE; }
void named_barrier(int id, int threads, bool waits) { meet_at(id, threads, waits, CALLER); }

void set_registers(int count, bool claims) {
  const Pc pc = CALLER;
  if (claims ? count < cur->registers : count > cur->registers) {
    report(MISUSE, pc, 0, claims ? "claims %d registers and has %d" : "releases all but %d registers and has %d",
           count, cur->registers);
    abort_block();
  }
  Block& block = *cta;
  cur->registers_pc = pc, ++cur->register_changes;
  if (!claims) {
    block.pool += cur->registers - count;
    cur->registers = count;
    wake(&block.pool);
    return;
  }
  // A warp gets them for all of its lanes at once: those that come later find that they have them.
  const auto lanes_need = [&] {
    int need = 0;
    for (unsigned m = warps[cur->warp].live; m; m &= m - 1)
      need += count - fibers[cur->warp * WARP + __builtin_ctz(m)].registers;
    return need;
  };
  while (cur->registers < count && block.pool < lanes_need()) wait_on(&block.pool, REGISTERS, count, pc);
  if (cur->registers == count) return;
  block.pool -= lanes_need();
  for (unsigned m = warps[cur->warp].live; m; m &= m - 1)
    fibers[cur->warp * WARP + __builtin_ctz(m)].registers = count;
}

uint32_t cluster_rank() { return cta->rank; }
uint32_t cluster_size() { return nblocks; }
void cluster_arrive(bool releases) { arrive_at_cluster_barrier(releases, CALLER); }
void cluster_wait() {
  const Pc pc = CALLER;
  if (!cur->cluster_waits) {
    report(MISUSE, pc, 0, "waits at the barrier of the cluster and has not arrived");
    abort_block();
  }
  while (cluster_barrier.generation == cur->cluster_generation)
    wait_on(&cluster_barrier, A_CLUSTER_BARRIER, 0, pc);
  cur->cluster_waits = false;
  if (!cur->saw_start) cur->saw_start = now;
  acquire_from(cluster_barrier.done);
}
uint32_t address_at(const void* p, uint32_t rank) { return shared_address(p) | (rank + 1) << RANK_SHIFT; }
void remote_load(void* to, uint32_t address, size_t bytes) {
  remote_access<false>(address, to, nullptr, bytes, CALLER);
}
void remote_store(uint32_t address, const void* from, size_t bytes) {
  remote_access<true>(address, nullptr, from, bytes, CALLER);
}
void remote_store_async(uint32_t address, uint32_t bar, const void* from, size_t bytes) {
  send(address, bar, from, 0, bytes, CALLER);
}
void remote_copy_async(uint32_t address, uint32_t bar, const void* src, uint32_t bytes) {
  const Pc pc = CALLER;
  const size_t from = (uintptr_t)src - (uintptr_t)cta->smem;
  if (from % 16 || bytes % 16 || !bytes) {
    report(MISALIGNED, pc, 0, "a copy of %u bytes from shared byte %zd: 16 and multiples of it", bytes,
           ssize_t(from));
    abort_block();
  }
  if (!in_shared_memory(from, bytes)) {
    report(OOB_SHARED, pc, 0, "reads shared bytes [%zd, %zd) of %zu", ssize_t(from), ssize_t(from + bytes),
           smem_bytes);
    abort_block();
  }
  send(address, bar, nullptr, from, bytes, pc);
}
void remote_arrive(uint32_t bar, bool of_cluster) {
  const Pc pc = CALLER;
  if (overwrites) settle_overwrite();
  Mbarrier& m = remote_mbarrier(bar, "arrives at", pc);
  const bool is_own = m.cta == cur->cta;
  if (!is_own) note_signal(m, pc);
  arrive_at(m, -1, is_own ? &m.own : of_cluster ? &m.remote : nullptr, pc);
}

}  // namespace cpucuda
