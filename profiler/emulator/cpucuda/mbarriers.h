// mbarriers: phases that end with their last arrival and their last byte.
//
// Source: PTX ISA, "mbarrier". A wait tells its thread of what was released by the arrivals of the phase, and
// of the bytes that arrived in it.
#pragma once
#include "waiting.h"

namespace cpucuda {
namespace {

constexpr uint32_t MOST_ARRIVALS = (1 << 20) - 1;
struct Mbarrier {
  Block* cta;
  size_t offset;
  int by;          // whose init it was,
  uint32_t at;     // when,
  bool fenced;     // whether a fence has made it visible to the async proxy,
  bool publishing, published;  // and a barrier of the cluster, once it is complete, to all its threads
  uint32_t arrivals, pending;
  int64_t bytes;           // to come; for a while less than none
  uint32_t phase;          // how many have ended
  bool observed;           // the last of them, by some wait,
  int64_t observed_phase;  // and how many had ended at the last wait
  Clock own,
      remote;  // released by the arrivals of this phase, from this block and by cluster's scope from others
  Clock own_done, remote_done;          // of the phase before
  std::vector<uint32_t> used;           // by thread: when last
  uint32_t agent, landed, landed_done;  // what arrives: its last time in this phase, in those before
  struct {
    int64_t phase;  // in which it was signalled last: by a copy of this block, by another block; -1: in none
    Pc pc;
    Fiber* by;
  } own_signal, remote_signal;
};
std::deque<Mbarrier> mbarriers;  // of the cluster

void make_visible() {  // the inits of the running thread, to the async proxy
  for (Mbarrier& m : mbarriers)
    if (m.by == cur->id) m.fenced = true;
}
Mbarrier* find_mbarrier(const Block& block, size_t offset) {
  if (block.mbarrier_at.empty() || !in_shared_memory(offset, 8)) return nullptr;
  const uint16_t index = block.mbarrier_at[offset / 8];
  return index && offset % 8 == 0 ? &mbarriers[index - 1] : nullptr;
}
void note_use(Mbarrier& m) {
  if (m.used.empty()) m.used.resize(threads_numbered());
  m.used[cur->id] = now;
}
Mbarrier& mbarrier_of(Block& block, size_t offset, const char* what, Pc pc) {
  Mbarrier* m = find_mbarrier(block, offset);
  if (!m) {
    report(MBARRIER_MISUSE, pc, 0, "%s %s, where no mbarrier is", what, place_in_shared(offset).c_str());
    abort_block();
  }
  if (!m->published && m->by != cur->id && m->at > known(cur->clock, m->by))
    report(RACE_RAW, pc, 0, "%s the mbarrier at shared byte %zu, whose init by %s no barrier orders before",
           what, offset, agent_name(m->by).c_str());
  note_use(*m);
  return *m;
}
void perhaps_end_phase(Mbarrier& m) {
  if (m.pending || m.bytes) return;
  ++m.phase, m.pending = m.arrivals, m.observed = false;
  m.own_done = std::exchange(m.own, {}), m.remote_done = std::exchange(m.remote, {});
  m.landed_done = m.landed;
  wake(&m);
}
void expect(Mbarrier& m, int64_t bytes, Pc pc) {
  m.bytes += bytes;
  if (m.bytes > MOST_ARRIVALS)
    report(MBARRIER_MISUSE, pc, 0, "expects %lld bytes in a phase: an mbarrier counts to 2^20 - 1",
           (long long)m.bytes);
}
// bytes < 0: no expect_tx. `clock` takes what the arrival releases; null: nothing.
void arrive_at(Mbarrier& m, int64_t bytes, Clock* clock, Pc pc) {
  if (m.phase && !m.observed && m.pending == m.arrivals)
    report(MBARRIER_MISUSE, pc, 0,
           "arrives in phase %u of the mbarrier at shared byte %zu, and nobody has waited for phase %u",
           m.phase, m.offset, m.phase - 1);
  if (clock) release_into(*clock);
  if (bytes >= 0) expect(m, bytes, pc);
  if (!m.pending) {
    report(MBARRIER_MISUSE, pc, 0,
           "arrives at the mbarrier at shared byte %zu, whose phase has all its %u arrivals", m.offset,
           m.arrivals);
    return;
  }
  --m.pending;
  perhaps_end_phase(m);
}
void note_signal(Mbarrier& m, Pc pc) {  // by the running thread, which goes on
  (m.cta == cur->cta ? m.own_signal : m.remote_signal) = {int64_t(m.phase), pc, cur};
}
std::string describe(const Mbarrier& m) {
  char text[160];
  snprintf(text, sizeof text,
           "the mbarrier at shared byte %zu (phase %u: %u of %u arrivals and %lld bytes to come)", m.offset,
           m.phase, m.pending, m.arrivals, (long long)m.bytes);
  return text;
}

}  // namespace

void mbarrier_init(const uint64_t* bar, uint32_t arrivals) {
  const Pc pc = CALLER;
  const size_t offset = (uintptr_t)bar - (uintptr_t)cta->smem;
  if (offset % 8 || !in_shared_memory(offset, 8) || !arrivals || arrivals > MOST_ARRIVALS) {
    report(MBARRIER_MISUSE, pc, 0, "init of an mbarrier at %s with %u arrivals",
           place_in_shared(offset).c_str(), arrivals);
    abort_block();
  }
  if (find_mbarrier(*cta, offset))
    report(MBARRIER_MISUSE, pc, 0, "init of the mbarrier at shared byte %zu, which is one already", offset);
  else
    check_shared<true>({offset, 8, pc, false, false});
  if (cta->mbarrier_at.empty()) cta->mbarrier_at.assign(SMEM_CAP / 8, 0);
  mbarriers.push_back({});
  Mbarrier& m = mbarriers.back();
  m.cta = cta, m.offset = offset, m.by = cur->id, m.at = now;
  m.arrivals = m.pending = arrivals, m.observed = true;
  m.own_signal.phase = m.remote_signal.phase = -1;
  m.agent = new_agent("what arrives at the mbarrier at shared byte", int(offset));
  cta->mbarrier_at[offset / 8] = mbarriers.size();
}
void mbarrier_invalidate(const uint64_t* bar) {
  const Pc pc = CALLER;
  const size_t offset = (uintptr_t)bar - (uintptr_t)cta->smem;
  const Mbarrier& m = mbarrier_of(*cta, offset, "invalidates", pc);
  for (uint32_t t = 0; t < m.used.size(); ++t)
    if (int(t) != cur->id && m.used[t] > known(cur->clock, t)) {
      report(RACE_WAR, pc, 0, "invalidates the mbarrier at shared byte %zu, which %s uses with no barrier between",
             offset, agent_name(t).c_str());
      break;
    }
  cta->mbarrier_at[offset / 8] = 0;
  check_shared<true>({offset, 8, pc, false, false});
}
void fence_mbarrier_init() { make_visible(); }
void fence_proxy_async() {
  if (overwrites) settle_overwrite();
  fence_proxies();
  make_visible();
}
void mbarrier_arrive(const uint64_t* bar, int64_t bytes) {
  const Pc pc = CALLER;
  if (overwrites) settle_overwrite();
  Mbarrier& m = mbarrier_of(*cta, (uintptr_t)bar - (uintptr_t)cta->smem, "arrives at", pc);
  arrive_at(m, bytes, &m.own, pc);
}
void mbarrier_expect_tx(const uint64_t* bar, uint32_t bytes) {
  const Pc pc = CALLER;
  expect(mbarrier_of(*cta, (uintptr_t)bar - (uintptr_t)cta->smem, "expects bytes at", pc), bytes, pc);
}
void mbarrier_wait(const uint64_t* bar, uint32_t parity, bool of_cluster) {
  const Pc pc = CALLER;
  if (overwrites) settle_overwrite();
  Mbarrier& m = mbarrier_of(*cta, (uintptr_t)bar - (uintptr_t)cta->smem, "waits for", pc);
  if (parity > 1)  // what a GPU makes of another bit nobody says
    report(MBARRIER_MISUSE, pc, 0, "waits for parity %u of an mbarrier: there are 0 and 1", parity);
  while ((m.phase & 1) == (parity & 1)) wait_on(&m, AN_MBARRIER, parity & 1, pc);
  m.observed = true, m.observed_phase = m.phase;
  note_use(m);
  if (!m.phase) return;  // the phase before the first counts as complete, and says nothing
  acquire_from(m.own_done);
  if (of_cluster) acquire_from(m.remote_done);
  learn(cur->clock, m.agent, m.landed_done);
  if (config.random) yield();
}

}  // namespace cpucuda
