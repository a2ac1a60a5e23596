// What happened before what: barriers, __syncwarp, and between blocks fences and atomics.
//
// Blocks run one after the other, but the GPU runs them in any order and side by side: an access of another
// block comes before this one only where it was published. A write is published by __threadfence, called by
// its thread or by one that a barrier orders after it, and then an atomic; whoever calls an atomic on that
// place later knows of it, and so do the threads that a barrier orders after that one. The fence that the
// reader needs too is not asked for: the CUDA C++ Programming Guide's example of __threadfence has none.
#pragma once
#include "clocks.h"

namespace cpucuda {
namespace {

// What a fence covers: all writes of the block up to a time, and single threads' up to later ones.
struct Covered {
  uint32_t all = 0;
  std::vector<uint32_t> upto;  // by thread; empty: nothing beyond `all`
};
// An atomic after a fence.
struct Release {
  uint32_t block_start;  // which block: blocks follow one another in time
  int thread;
  uint64_t version;  // of what was covered then
  std::shared_ptr<const Covered> covered;
};
struct Place {  // that an atomic was called on
  std::vector<Release> releases;                // in the order of time
  std::unordered_map<uint32_t, size_t> before;  // places that a releasing thread knew, and how much of them
};
// From `time` on, `thread` and what a barrier orders after it know the first `count` releases of a place.
struct Acquired {
  uint32_t place;
  size_t count;
  int thread;
  uint32_t time;
};
std::vector<uint32_t> block_starts;  // of the launch, with
std::vector<uint3> block_ids;        // their blocks
bool fenced;                         // in this launch. Until then there is no order to keep
bool order_unknown;                  // too much of it to keep: then all is ordered, and nothing reported
std::vector<Place> places;
std::unordered_map<uint64_t, uint32_t> place_index;
std::vector<Acquired> acquired;  // by the running block
struct Fence {                   // of one thread of the running block
  uint32_t all, lanes[WARP];     // of its warp
};
std::vector<Fence> fences;                 // by thread
std::vector<int> fenced_threads;           // by the fences since the last barrier
Covered barrier_covers;                    // by fences before the last barrier: known to the whole block
std::vector<Covered> warp_covers;          // by fences before a __syncwarp, by warp; upto is by lane
uint64_t covered_version;                  // counts changes of what is covered
constexpr size_t MOST_ACQUIRED = 1 << 12;  // of a block
constexpr size_t MOST_RELEASED = 1 << 26;  // of a launch: bytes
size_t released_bytes;

// Whether a barrier or __syncwarp of the block lies between what `thread` of it did at `time` and now.
bool met(const Warp& w, int thread, uint32_t time) {
  if (clocks) return thread == cur->id || time <= known(cur->clock, thread);
  if (time < cta->barrier || thread == cur->id) return true;
  if (thread / WARP != cur->warp) return false;
  return time < w.synced || (w.partial && time < w.seen[cur->lane][thread % WARP]);
}
uint64_t place_key(const void* p) {
  const uintptr_t a = (uintptr_t)p;
  const size_t offset = a - (uintptr_t)cta->smem;  // shared memory is another one in each block
  return offset < SMEM_CAP
             ? uint64_t(1) << 63 | uint64_t(cta->rank) << 56 | uint64_t(block_start) << 20 | offset
             : a;
}
bool has_acquired(const Acquired& a, const Warp& w) { return met(w, a.thread, a.time); }

// Whether what `thread` of the block of that time did at `time` was published to the running thread.
__attribute__((cold, noinline)) bool published(const Warp& w, int thread, uint32_t time) {
  if (order_unknown) return true;
  const uint32_t start = *--std::upper_bound(block_starts.begin(), block_starts.end(), time);
  for (const Acquired& a : acquired) {
    if (!has_acquired(a, w)) continue;
    const auto& releases = places[a.place].releases;
    const auto earlier = [](const Release& r, uint32_t at) { return r.block_start < at; };
    for (auto r = std::lower_bound(releases.begin(), releases.begin() + a.count, start, earlier);
         r != releases.begin() + a.count && r->block_start == start; ++r)
      if (time <= r->covered->all ||
          (size_t(thread) < r->covered->upto.size() && time <= r->covered->upto[thread]))
        return true;
  }
  return false;
}
// Whether what `thread` of this block, or of its cluster, did at `time` happened before what the running
// thread does now. A barrier of the block orders all threads, __syncwarp the lanes that took part; shuffles
// order nothing.
bool ordered(const Warp& w, int thread, uint32_t time) {
  return met(w, thread, time) || (fenced && published(w, thread, time));
}

// --- fences and atomics of the running thread

void start_order(bool launch) {  // of a launch, or of one of its blocks
  if (launch) {
    block_starts.clear(), block_ids.clear();
    fenced = order_unknown = false;
    places.clear(), place_index.clear(), released_bytes = 0;
  } else {
    block_starts.push_back(block_start), block_ids.push_back(cta->id);
  }
  acquired.clear(), fenced_threads.clear();
  fences.clear(), warp_covers.clear(), barrier_covers = {};
}
void fence() {
  fenced = true;
  if (clocks) {
    learn(cur->clock, cur->id, now);
    for (size_t t = 0; t < cur->clock.covered.size(); ++t)
      cur->clock.covered[t] = std::max(cur->clock.covered[t], cur->clock.known[t]);
    ++now, ++covered_version;
    return;
  }
  if (fences.empty()) {
    fences.assign(nthreads, {});
    warp_covers.assign(nwarps, {});
    barrier_covers.upto.assign(nthreads, 0);
  }
  const Warp& w = warps[cur->warp];
  Fence& f = fences[cur->id];
  f.all = cta->barrier - 1;
  for (int l = 0; l < WARP; ++l) {
    f.lanes[l] = std::max(f.lanes[l], w.synced - 1);
    if (w.partial && w.seen[cur->lane][l]) f.lanes[l] = std::max(f.lanes[l], w.seen[cur->lane][l] - 1);
  }
  f.lanes[cur->lane] = now++;  // what the thread writes next is later
  fenced_threads.push_back(cur->id);
  ++covered_version;
}
void add_fence(Covered& covers, const Fence& f, int first_lane) {
  covers.all = std::max(covers.all, f.all);
  for (int l = 0; l < WARP && size_t(first_lane + l) < covers.upto.size(); ++l)
    covers.upto[first_lane + l] = std::max(covers.upto[first_lane + l], f.lanes[l]);
}
void fences_meet_at_barrier() {
  if (fenced_threads.empty()) return;
  for (int t : fenced_threads) add_fence(barrier_covers, fences[t], t / WARP * WARP);
  fenced_threads.clear();
  ++covered_version;
}
void fences_meet_at_syncwarp(unsigned mask) {
  if (fences.empty()) return;
  Covered& covers = warp_covers[cur->warp];
  covers.upto.resize(WARP);
  for (unsigned m = mask; m; m &= m - 1) {
    const int thread = cur->warp * WARP + __builtin_ctz(m);
    if (thread < nthreads && fences[thread].all) add_fence(covers, fences[thread], 0);
  }
  ++covered_version;
}
std::shared_ptr<const Covered> covered_now() {
  if (clocks) {
    const auto& covered = cur->clock.covered;
    const bool is_empty = std::all_of(covered.begin(), covered.end(), [](uint32_t time) { return !time; });
    return std::make_shared<Covered>(Covered{0, is_empty ? std::vector<uint32_t>() : covered});
  }
  auto covers = std::make_shared<Covered>(barrier_covers);
  const int first_lane = cur->warp * WARP;
  add_fence(*covers, fences[cur->id], first_lane);
  const Covered& of_warp = warp_covers[cur->warp];
  if (!of_warp.upto.empty()) {
    Fence f{of_warp.all, {}};
    std::copy(of_warp.upto.begin(), of_warp.upto.end(), f.lanes);
    add_fence(*covers, f, first_lane);
  }
  const bool beyond = std::any_of(covers->upto.begin(), covers->upto.end(),
                                  [&](uint32_t time) { return time > covers->all; });
  if (!beyond) covers->upto = {};
  return covers;
}
void acquire(uint32_t place, size_t count) {
  const Warp& w = warps[cur->warp];
  for (Acquired& a : acquired)
    if (a.place == place && has_acquired(a, w)) {
      a.count = std::max(a.count, count);
      return;
    }
  acquired.push_back({place, count, cur->id, now});
}
// An atomic of the running thread: it learns what was released at that place, and releases what is covered.
void atomic_order(const void* p) {
  if (!fenced || order_unknown) return;
  const auto [index, fresh] = place_index.try_emplace(place_key(p), places.size());
  if (fresh) places.emplace_back();
  Place& place = places[index->second];
  if (!place.releases.empty()) acquire(index->second, place.releases.size());
  for (const auto& [before, count] : place.before) acquire(before, count);
  if (fences.empty() && !clocks) return;  // of this block
  if (!place.releases.empty()) {
    const Release& last = place.releases.back();
    if (!clocks && last.thread == cur->id && last.version == covered_version) return;  // and of this block
  }
  auto covers = covered_now();
  if (!covers->all && covers->upto.empty()) return;
  const Warp& w = warps[cur->warp];
  for (const Acquired& a : acquired)
    if (a.place != index->second && has_acquired(a, w))
      place.before[a.place] = std::max(place.before[a.place], a.count);
  released_bytes += sizeof(Release) + sizeof(Covered) + 4 * covers->upto.size();
  place.releases.push_back({block_start, cur->id, covered_version, std::move(covers)});
  order_unknown = acquired.size() > MOST_ACQUIRED || released_bytes > MOST_RELEASED;
}

}  // namespace
}  // namespace cpucuda
