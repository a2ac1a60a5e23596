// Where a cluster, its blocks and their threads start and end, for what hopper.cuh has.
#pragma once
#include "clusters.h"

namespace cpucuda {
namespace {

std::string waited_for(const Fiber& f) {
  char text[200] = "";
  switch (f.what) {
    case AN_MBARRIER:
      return "parity " + std::to_string(f.wanted) + " of " +
             describe(*static_cast<const Mbarrier*>(f.waits_for));
    case A_NAMED_BARRIER: {
      const Named& barrier = f.cta->named[f.wanted];
      snprintf(text, sizeof text, "named barrier %u, where %d of %d threads are", f.wanted, barrier.arrived,
               barrier.expected);
      return text;
    }
    case A_CLUSTER_BARRIER:
      snprintf(text, sizeof text, "the barrier of the cluster, where %u of %d threads are",
               cluster_barrier.arrived, live);
      return text;
    case A_BULK_GROUP:
      return "its TMA stores";
    case A_WGMMA_GROUP:
      return "a wgmma to which not all threads of its warpgroup have come";
    case REGISTERS:
      snprintf(text, sizeof text, "%u registers a thread from %d, where %d of the block's are free", f.wanted,
               f.registers, f.cta->pool);
      return text;
  }
  return text;
}

void start_hopper_cluster() {
  mbarriers.clear(), copies.clear(), remote_accesses.clear(), sent.clear(), agents.clear();
  cluster_barrier = {};
  warpgroups.assign(nblocks * warpgroups_a_block(), {});
  for (size_t g = 0; g < warpgroups.size(); ++g) {
    warpgroups[g].agent = new_agent("a wgmma of warpgroup", int(g) % warpgroups_a_block());
    warpgroups[g].clock_of = ~0u;
  }
  forget_readers();
}
void start_hopper_block(Block& block) {
  for (Named& barrier : block.named) barrier = {};
  block.mbarrier_at.clear();
  block.pool = 0;
  for (size_t region = 0; region * REGION < smem_bytes; ++region)
    std::memset(block.shadow + region * REGION, 0, (REGION >> granule_shift[region]) * sizeof(Cell));
  // What the registers of an SM leave each thread, where as many blocks run as the launch bound promises.
  const int registers = std::min(255, 65536 / (nwarps * WARP * blocks_an_sm)) / 8 * 8;
  each_thread(block, [&](Fiber& f) {
    start_clock(f);
    f.at_fence = {};
    f.saw_start = 0;
    f.cluster_waits = false;
    f.store_times.clear(), f.store_groups.clear(), f.stores_waited = 0, f.store_agent = 0;
    f.registers = registers, f.registers_pc = nullptr, f.register_changes = 0;
    f.products = 0, f.product_groups.clear(), f.in_flight.clear();
    f.in_flight_lo = ~uintptr_t(0), f.in_flight_hi = 0;
    ++f.fence_epoch, f.has_fenced = false;
    f.touched = touched + size_t(&f - fibers) * (STACK / 4);
  });
}
void end_of_hopper_thread() {
  const size_t left = cur->store_times.size() - cur->stores_waited;
  if (left) report(ASYNC_LEFT_PENDING, cur->store_pc, 0, "ends with %zu TMA stores never waited for", left);
  if (!cur->in_flight.empty())
    report(ASYNC_LEFT_PENDING, cur->product_pc, 0, "ends with wgmma never waited for");
}
// Shared memory is another block's by now. What may still reach for it is a mistake, in whatever order it
// came.
void block_has_ended(Block& block) {
  each_thread(block, [&](Fiber& f) {
    Fiber& first = fibers[f.id - thread_of_group(f)];
    Fiber& changed = f.register_changes < first.register_changes ? first : f;
    if (f.registers == first.registers && f.register_changes == first.register_changes) return;
    on_behalf(&changed, [&] {
      report(MISUSE, changed.registers_pc, 0,
             "only a part of a warpgroup comes to have %d registers a thread", changed.registers);
    });
  });
  const auto is_lost = [&](const Copy& c) { return c.kind != Copy::STORE && c.cta == &block; };
  for (const Copy& c : copies)
    if (is_lost(c) && c.phase != c.bar->phase) report_wrong_phase(c, (c.rows - c.done) * c.row_bytes());
  copies.erase(std::remove_if(copies.begin(), copies.end(), is_lost), copies.end());
  // A block's memory is there until its last thread has ended: any of them may have waited for the others.
  const auto knows = [&](uint32_t agent, uint32_t time) {
    bool is_known = false;
    each_thread(block, [&](Fiber& f) { is_known = is_known || time <= known(f.clock, agent); });
    return is_known;
  };
  for (const RemoteAccess& access : remote_accesses)
    if (access.to == &block && !knows(access.by->id, access.time))
      on_behalf(access.by, [&] {
        report(PEER_EXITED, access.pc, 0,
               "reaches into the block of rank %d, which does not wait for that before it ends", block.rank);
      });
  for (const Sent& copy : sent)
    if (copy.by->cta == &block && !knows(copy.agent, copy.time))
      on_behalf(copy.by, [&] {
        report(ASYNC_LEFT_PENDING, copy.pc, 0,
               "the block ends, and does not know that its shared memory has been copied to the block of rank "
               "%d",
               copy.to);
      });
  for (const Mbarrier& m : mbarriers) {
    if (m.cta != &block) continue;
    if (m.own_signal.phase >= m.observed_phase)
      on_behalf(m.own_signal.by, [&] {
        report(ASYNC_LEFT_PENDING, m.own_signal.pc, 0,
               "the block ends, and nobody has waited for what arrives at the mbarrier at shared byte %zu in "
               "phase %lld",
               m.offset, (long long)m.own_signal.phase);
      });
    if (m.remote_signal.phase >= m.observed_phase)
      on_behalf(m.remote_signal.by, [&] {
        report(PEER_EXITED, m.remote_signal.pc, 0,
               "signals the mbarrier at shared byte %zu of the block of rank %d, which does not wait for "
               "that before "
               "it ends",
               m.offset, block.rank);
      });
  }
  std::memset(block.smem, 0xff, smem_bytes);
}
void thread_has_ended() {
  if (!cta->live) block_has_ended(*cta);
  perhaps_end_cluster_barrier();
}
void end_hopper_cluster() {
  while (!aborted && !copies.empty()) advance(0, copies[0].rows);  // stores that nobody waited for
  copies.clear();
}

}  // namespace
}  // namespace cpucuda
