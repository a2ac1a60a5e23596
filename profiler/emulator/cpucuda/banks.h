// The model of the banks: which accesses of a warp make one request, and how many wavefronts that takes.
// cp.async is left out.
#pragma once
#include "state.h"

namespace cpucuda {
namespace {

// The wavefronts of one request. Lanes are served 32, 16 or 8 at a time, by the width of their access. Within
// one such phase a bank delivers one 4-byte word per wavefront, to every lane that asks for that word.
void request(const uint32_t* address, unsigned mask, uint32_t bytes, uint32_t pc, bool store) {
  const int together = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  const uint32_t words = bytes <= 4 ? 1 : bytes / 4;
  uint64_t wavefronts = 0, ideal = 0;
  for (int base = 0; base < WARP; base += together) {
    uint16_t asked[32][33];
    uint8_t count[32] = {};
    int most = 0;
    for (unsigned m = mask >> base & (together == 32 ? ~0u : (1u << together) - 1); m; m &= m - 1) {
      const uint32_t first = address[base + __builtin_ctz(m)] / 4;
      for (uint32_t word = first; word < first + words; ++word) {
        const int bank = word % 32;
        int i = 0;
        while (i < count[bank] && asked[bank][i] != uint16_t(word)) ++i;
        if (i < count[bank]) continue;
        asked[bank][count[bank]++] = uint16_t(word);
        most = std::max<int>(most, count[bank]);
      }
    }
    wavefronts += most, ideal += most > 0;
  }
  if (banks.size() * 2 >= bank_slots.size()) {  // half full: a larger table, and all entries anew
    bank_slots.assign(std::max<size_t>(1024, bank_slots.size() * 4), 0);
    for (size_t i = 0; i < banks.size(); ++i) {
      size_t slot = banks[i].pc * 2654435761u % bank_slots.size();
      while (bank_slots[slot]) slot = (slot + 1) % bank_slots.size();
      bank_slots[slot] = i + 1;
    }
  }
  size_t slot = pc * 2654435761u & (bank_slots.size() - 1);
  while (bank_slots[slot] && banks[bank_slots[slot] - 1].pc != pc)
    slot = (slot + 1) & (bank_slots.size() - 1);
  if (!bank_slots[slot]) {
    banks.push_back({pc, store, 0, 0, 0});
    bank_slots[slot] = banks.size();
  }
  Bank& b = banks[bank_slots[slot] - 1];
  b.requests++, b.wavefronts += wavefronts, b.ideal += ideal;
}

// A log entry: code offset << 32 | store << 31 | log2(bytes) << 24 | byte of shared memory.
void log_access(size_t offset, size_t bytes, bool store, Pc pc) {
  warps[cur->warp].logged |= 1u << cur->lane;
  cur->log.push_back(uint64_t(offset_of(pc)) << 32 | uint64_t(store) << 31 |
                     uint64_t(__builtin_ctzll(bytes)) << 24 | offset);
}
// Replays the logs of lanes that meet as the warp would have run them. Since they last met they have run the
// same code, in step but for divergent branches. As long as the next access of all lanes is the same
// instruction, it is one request. Where it is not, the lane with most accesses left is on a branch that the
// others did not take: it goes first, with the lanes at the same instruction, until all agree again.
void flush_log(int warp, unsigned mask) {
  const Fiber* lane = fibers + warp * WARP;
  const uint64_t *next[WARP], *end[WARP];
  uint32_t address[WARP];
  const unsigned logged = warps[warp].logged & mask;
  if (!logged) return;
  warps[warp].logged &= ~logged;
  unsigned left = logged;
  for (unsigned m = logged; m; m &= m - 1) {
    const int l = __builtin_ctz(m);
    next[l] = lane[l].log.data(), end[l] = next[l] + lane[l].log.size();
  }
  while (left) {
    uint64_t what = *next[__builtin_ctz(left)] >> 24;
    unsigned together = 0;
    for (unsigned m = left; m; m &= m - 1) together |= *next[__builtin_ctz(m)] >> 24 == what ? m & -m : 0;
    if (together != left) {
      long most = 0;
      for (unsigned m = left; m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        if (end[l] - next[l] > most) most = end[l] - next[l], what = *next[l] >> 24;
      }
      together = 0;
      for (unsigned m = left; m; m &= m - 1) together |= *next[__builtin_ctz(m)] >> 24 == what ? m & -m : 0;
    }
    for (unsigned m = together; m; m &= m - 1) {
      const int l = __builtin_ctz(m);
      address[l] = *next[l] & 0xffffff;
      if (++next[l] == end[l]) left &= ~(m & -m);
    }
    request(address, together, 1u << (what & 7), uint32_t(what >> 8), what >> 7 & 1);
  }
  for (unsigned m = logged; m; m &= m - 1) fibers[warp * WARP + __builtin_ctz(m)].log.clear();
}

}  // namespace
}  // namespace cpucuda
