// Vector clocks: what each thread knows of every other agent, for kernels in which the order between threads
// is more than __syncthreads and __syncwarp (order.h). They are kept where the source includes hopper.cuh.
//
// There is one time, `now`. An access is stamped with its agent and the time; it happened before what a
// thread does if the thread's clock has come to that time for that agent. A release joins a thread's clock
// into that of a barrier, an acquire the other way. Agents beside the threads are those that work on their
// own: the bytes that arrive at an mbarrier, the products of a warpgroup, the TMA stores of a thread. These
// have no order among themselves; a wait is what tells a thread of them. What a thread wrote the async proxy
// sees only once a fence of the proxies lies between: a second vector that takes the same ways.
#pragma once
#include "fibers.h"

namespace cpucuda {
namespace {

struct Agent {  // that is no thread
  const char* what;
  int number;  // in its kind: a byte of shared memory, a warpgroup, a thread
};
std::vector<Agent> agents;  // their numbers follow those of the threads
int threads_numbered() { return nblocks * nwarps * WARP; }

uint32_t new_agent(const char* what, int number) {
  agents.push_back({what, number});
  return threads_numbered() + agents.size() - 1;
}
bool is_thread(uint32_t agent) { return agent < uint32_t(threads_numbered()); }

// "thread 3 (warp 0)", and which block's in a cluster.
std::string agent_name(uint32_t agent) {
  char text[120];
  if (!is_thread(agent)) {
    const Agent& a = agents[agent - threads_numbered()];
    snprintf(text, sizeof text, "%s %d", a.what, a.number);
    return text;
  }
  const Fiber& f = fibers[agent];
  const int thread = agent - f.cta->first_warp * WARP;
  if (nblocks == 1)
    snprintf(text, sizeof text, "thread %d (warp %d)", thread, thread / WARP);
  else
    snprintf(text, sizeof text, "thread %d (warp %d) of the block of rank %d", thread, thread / WARP,
             f.cta->rank);
  return text;
}

uint32_t known(const Clock& clock, uint32_t agent) {
  return agent < clock.known.size() ? clock.known[agent] : 0;
}
void learn(Clock& clock, uint32_t agent, uint32_t time) {
  if (clock.known.size() <= agent) clock.known.resize(agent + 1);
  clock.known[agent] = std::max(clock.known[agent], time);
}
void join(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
  if (to.size() < from.size()) to.resize(from.size());
  uint32_t* a = to.data();
  const uint32_t* b = from.data();
  for (size_t i = 0, n = from.size(); i < n; ++i) a[i] = a[i] < b[i] ? b[i] : a[i];
}
void join(Clock& to, const Clock& from) {
  join(to.known, from.known), join(to.proxied, from.proxied), join(to.covered, from.covered);
}
void join_least(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
  to.resize(std::min(to.size(), from.size()));
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::min(to[i], from[i]);
}
void start_clock(Fiber& f) {
  const size_t count = threads_numbered();
  f.clock.known.assign(count, 0), f.clock.proxied.assign(count, 0), f.clock.covered.assign(count, 0);
}
// What the running thread has done until now is released; what it does next is later.
void release_into(Clock& clock) {
  learn(cur->clock, cur->id, now);
  join(clock, cur->clock);
  ++now;
}
void acquire_from(const Clock& clock) { join(cur->clock, clock); }

// All threads of `mask` know what each of them did: a __syncwarp.
void clocks_meet(int warp, unsigned mask) {
  Clock all;
  for (unsigned m = mask; m; m &= m - 1) {
    Fiber& f = fibers[warp * WARP + __builtin_ctz(m)];
    learn(f.clock, f.id, now);
    join(all, f.clock);
  }
  for (unsigned m = mask; m; m &= m - 1) join(fibers[warp * WARP + __builtin_ctz(m)].clock, all);
}
// The same for all live threads of a block: a __syncthreads.
void clocks_meet(const Block& block) {
  Clock all;
  for (int w = 0; w < nwarps; ++w)
    for (unsigned m = warps[block.first_warp + w].live; m; m &= m - 1) {
      Fiber& f = fibers[(block.first_warp + w) * WARP + __builtin_ctz(m)];
      learn(f.clock, f.id, now);
      join(all, f.clock);
    }
  for (int w = 0; w < nwarps; ++w)
    for (unsigned m = warps[block.first_warp + w].live; m; m &= m - 1)
      join(fibers[(block.first_warp + w) * WARP + __builtin_ctz(m)].clock, all);
}
// What the running thread knows, the async proxy sees.
void fence_proxies() {
  learn(cur->clock, cur->id, now);
  std::vector<uint32_t> of_threads(
      cur->clock.known.begin(),
      cur->clock.known.begin() + std::min<size_t>(cur->clock.known.size(), threads_numbered()));
  join(cur->clock.proxied, of_threads);
  ++now;
}

}  // namespace
}  // namespace cpucuda
