// wgmma: products of a warpgroup that run while its threads go on.
//
// A product is issued when all 128 threads have come to it with equal operands. What it reads from shared
// memory is judged then, against the least that any of the threads knew at its last wgmma_fence. It is
// computed there or at the wait that needs it, by the run's landing policy; its accumulators are NaN in the
// threads' registers until each thread has waited. Source: PTX ISA, "Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate": matrix descriptors, canonical layouts, fragments. In which order the hardware adds,
// and how it rounds, is not specified.
#pragma once
#include "tma.h"

namespace cpucuda {
namespace {

constexpr int GROUP = 128;  // threads
// Accumulators of one shape in flight: [64][n], as registers of the threads at `d`.
struct Accumulators {
  float* d[GROUP];  // null: its thread has not come, or has them back
  int n, holders;
  uint32_t last;  // product
  std::vector<float> values;
};
struct Product {
  int n, trans, threads;  // that have come
  bool from_registers, accumulate, late_operand;
  uint64_t a, b;
  Accumulators* d;
  const uint32_t* operand[GROUP];
  uint32_t copied[GROUP][4];
  uint32_t time;
  Pc pc;
};
struct Warpgroup {
  std::deque<Product> products;  // that have not run, or not been issued
  uint32_t run, issued;          // how many
  std::vector<uint32_t> times;   // of those that were issued
  std::deque<Accumulators> accumulators;
  uint32_t agent, fences;  // fences: of all its threads
  uint32_t clock_of;       // how many fences lay behind the clock below
  std::vector<uint32_t> known, proxied;
};
std::vector<Warpgroup> warpgroups;  // of the cluster
int warpgroups_a_block() { return (nwarps + 3) / 4; }
Warpgroup& warpgroup_of(const Fiber& f) {
  return warpgroups[f.cta->rank * warpgroups_a_block() + (f.warp - f.cta->first_warp) / 4];
}
int thread_of_group(const Fiber& f) { return (f.id - f.cta->first_warp * WARP) % GROUP; }

// A descriptor's operand: [size][16] halves, K-major, or MN-major where `trans`.
struct Operand {
  uint64_t descriptor;
  bool trans;
  uint64_t mode() const { return descriptor >> 62; }
  uint32_t start() const { return uint32_t(descriptor & 0x3FFF) << 4; }
  // The byte address in the shared window of element (mn, k).
  uint32_t at(int mn, int k) const {
    const uint32_t lead = uint32_t(descriptor >> 16 & 0x3FFF) << 4,
                   stride = uint32_t(descriptor >> 32 & 0x3FFF) << 4;
    const int width = mode() ? 16 >> int(mode()) : 1;  // 16-byte chunks in a row of the pattern: 8, 4, 2
    uint32_t linear;
    if (trans && mode())
      linear = mn % (8 * width) * 2 + mn / (8 * width) * lead + k % 8 * 16 * width + k / 8 * stride;
    else if (trans)
      linear = mn % 8 * 2 + mn / 8 * stride + k % 8 * 16 + k / 8 * lead;
    else if (mode())
      linear = mn % 8 * 16 * width + mn / 8 * stride + k * 2;
    else
      linear = mn % 8 * 16 + mn / 8 * stride + k % 8 * 2 + k / 8 * lead;
    return swizzled(start() + linear, mode());
  }
};
float half_at(const void* p) {
  _Float16 value;
  std::memcpy(&value, p, sizeof value);
  return float(value);
}
int row_of(int thread, int i) { return thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2 % 2); }
int accumulator_column(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }
int operand_column(int thread, int i) { return thread % 4 * 2 + i % 2 + 8 * (i / 4); }

// d[64][n] += a[64][16] b[16][n]
void multiply(float* d, const float (*a)[16], const float* b, int n) {
  typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
  for (int m = 0; m < 64; ++m)
    for (int column = 0; column < n; column += 8) {
      Eight& sum = *reinterpret_cast<Eight*>(d + m * n + column);
      Eight total = sum;
      for (int k = 0; k < 16; ++k) total += a[m][k] * *reinterpret_cast<const Eight*>(b + k * n + column);
      sum = total;
    }
}
void run_product(const Block& block, Product& p) {
  static float a[64][16], b[16 * 256];
  const auto read = [&](const Operand& from, int mn, int k) {
    const uint32_t address = from.at(mn, k) - SHARED_BASE;
    return in_shared_memory(address, 2) ? half_at(block.smem + address) : NAN;
  };
  const Operand of_a{p.a, false}, of_b{p.b, p.trans != 0};
  for (int n = 0; n < p.n; ++n)
    for (int k = 0; k < 16; ++k) b[k * p.n + n] = read(of_b, n, k);
  if (p.from_registers) {
    for (int t = 0; t < GROUP; ++t)
      for (int i = 0; i < 8; ++i)
        a[row_of(t, i)][operand_column(t, i)] =
            half_at((const char*)(p.late_operand ? p.operand[t] : p.copied[t]) + i * 2);
  } else {
    for (int m = 0; m < 64; ++m)
      for (int k = 0; k < 16; ++k) a[m][k] = read(of_a, m, k);
  }
  if (!p.accumulate) std::fill(p.d->values.begin(), p.d->values.end(), 0.f);
  multiply(p.d->values.data(), a, b, p.n);
}
void run_products(const Block& block, Warpgroup& group, uint32_t upto) {
  for (; group.run < upto; ++group.run) {
    run_product(block, group.products.front());
    group.products.pop_front();
  }
}

// Whether all of an operand lies in shared memory, on the boundary of its pattern, and may be read now.
void check_operand(const Operand& operand, int size, const Product& p, const Actor& actor) {
  const uint32_t pattern = (1u << swizzle_bits(operand.mode())) - 1;
  if (operand.start() >> 7 & pattern || operand.descriptor >> 49 & 7) {
    report(MISALIGNED_TILE, p.pc, 0,
           "a descriptor's swizzle starts at shared address %u with base offset %u: a tile starts on %u "
           "bytes, with "
           "base offset 0",
           operand.start(), unsigned(operand.descriptor >> 49 & 7), 128 * (pattern + 1));
  }
  // Eight rows of 16 bytes are a matrix that the tensor cores read at once: the request of the bank model.
  for (int mn = 0; mn < size; mn += 8)
    for (int k = 0; k < 16; k += 8) {
      uint32_t address[WARP];
      for (int row = 0; row < 8; ++row) {
        address[row] = operand.at(operand.trans ? mn : mn + row, operand.trans ? k + row : k);
        const uint32_t offset = address[row] - SHARED_BASE;
        if (!in_shared_memory(offset, 16)) {
          report(OOB_SHARED, p.pc, 0, "a descriptor reaches shared byte %d of %zu", int(offset), smem_bytes);
          return;
        }
        check_shared<false>({offset, 16, p.pc, false, false, false, &actor});
      }
      request(address, 0xff, 16, offset_of(p.pc), false);
    }
}
void issue(Warpgroup& group, Product& p) {  // by the last thread that came
  const int first = cur->id - thread_of_group(*cur);
  if (group.clock_of != group.fences) {
    group.known = fibers[first].at_fence.known, group.proxied = fibers[first].at_fence.proxied;
    for (int t = 1; t < GROUP; ++t) {
      join_least(group.known, fibers[first + t].at_fence.known);
      join_least(group.proxied, fibers[first + t].at_fence.proxied);
    }
    group.clock_of = group.fences;
  }
  p.time = now++;
  group.times.push_back(p.time);
  const Actor actor{group.agent, p.time, group.known, group.proxied};
  check_operand({p.b, p.trans != 0}, p.n, p, actor);
  if (!p.from_registers) check_operand({p.a, false}, 64, p, actor);
  ++group.issued;
  wake(&group);
  p.late_operand = config.landing == LATE || (config.landing == ROWS && rnd() & 1);
  if (config.landing == AT_ONCE || (config.landing == ROWS && rnd() & 1))
    run_products(*cur->cta, group, group.issued);
}
bool was_used(const void* p, size_t bytes) {  // since the last fence
  const size_t first = ((uintptr_t)p - cur->stack) / 4;
  if (first + bytes / 4 > STACK / 4) return false;  // no local array
  for (size_t i = 0; i < bytes / 4; ++i)
    if (cur->touched[first + i] == cur->fence_epoch) return true;
  return false;
}
void own_registers(const void* p, size_t bytes, bool is_operand) {
  const uintptr_t lo = (uintptr_t)p, hi = lo + bytes;
  for (Registers& r : cur->in_flight)
    if (r.lo == lo && r.hi == hi && r.is_operand == is_operand) {
      r.product = cur->products;
      return;
    }
  cur->in_flight.push_back({lo, hi, cur->products, is_operand});
}
void find_bounds() {
  cur->in_flight_lo = ~uintptr_t(0), cur->in_flight_hi = 0;
  for (const Registers& r : cur->in_flight)
    cur->in_flight_lo = std::min(cur->in_flight_lo, r.lo),
    cur->in_flight_hi = std::max(cur->in_flight_hi, r.hi);
}
// The accumulators that a thread hands over, and where they are kept while products use them.
Accumulators* take_accumulators(Warpgroup& group, Product& p, bool is_first, float* d, int thread) {
  if (is_first) {
    for (Accumulators& known : group.accumulators)
      if (known.holders && known.d[thread] == d) p.d = &known;
    if (!p.d) {
      for (Accumulators& free : group.accumulators)
        if (!free.holders) p.d = &free;
      if (!p.d) group.accumulators.push_back({}), p.d = &group.accumulators.back();
      *p.d = {};
      p.d->n = p.n, p.d->values.assign(64 * p.n, 0.f);
    }
  }
  Accumulators& a = *p.d;
  a.last = cur->products;
  if (a.n != p.n || (a.d[thread] && a.d[thread] != d)) {
    report(MISUSE, p.pc, 0, "a wgmma whose accumulators are part of those of another that is in flight");
    abort_block();
  }
  if (!a.d[thread]) {
    a.d[thread] = d, ++a.holders;
    for (int i = 0; i < p.n / 2; ++i) {
      a.values[row_of(thread, i) * p.n + accumulator_column(thread, i)] = d[i];
      d[i] = NAN;
    }
  }
  return &a;
}
void give_back(Warpgroup& group, int thread, uint32_t waited) {  // products 0 .. waited - 1 have run
  for (Accumulators& a : group.accumulators)
    if (a.holders && a.d[thread] && a.last < waited) {
      for (int i = 0; i < a.n / 2; ++i)
        a.d[thread][i] = a.values[row_of(thread, i) * a.n + accumulator_column(thread, i)];
      a.d[thread] = nullptr, --a.holders;
    }
}

}  // namespace

void wgmma_fence() {
  if (overwrites) settle_overwrite();
  learn(cur->clock, cur->id, now);
  ++now;
  cur->at_fence.known = cur->clock.known, cur->at_fence.proxied = cur->clock.proxied;
  ++cur->fence_epoch, cur->has_fenced = true;
  ++warpgroup_of(*cur).fences;
}
void wgmma(float* d, int n, const uint32_t* operand, uint64_t a, uint64_t b, bool accumulate, bool trans_b) {
  const Pc pc = CALLER;
  Warpgroup& group = warpgroup_of(*cur);
  const int thread = thread_of_group(*cur);
  const uint32_t number = cur->products;  // from 0
  const bool is_first = number == group.run + group.products.size();
  if (is_first) {
    group.products.emplace_back();
    Product& p = group.products.back();
    p.n = n, p.trans = trans_b, p.from_registers = operand, p.accumulate = accumulate, p.a = a, p.b = b,
    p.pc = pc;
  }
  Product& p = group.products[number - group.run];
  if (p.n != n || p.trans != trans_b || p.from_registers != (operand != nullptr) ||
      p.accumulate != accumulate || p.a != a || p.b != b || p.pc != pc) {
    report(MISUSE, pc, offset_of(p.pc),
           "the threads of a warpgroup are in different wgmma, or give it other operands");
    abort_block();
  }
  if (!cur->has_fenced || was_used(d, n * 2) || (operand && was_used(operand, 16)))
    report(WGMMA_FENCE_MISSING, pc, 0, "uses registers that thread %d has used since its last wgmma_fence",
           thread);
  if (operand) {
    p.operand[thread] = operand;
    std::memcpy(p.copied[thread], operand, 16);
    own_registers(operand, 16, true);
  }
  take_accumulators(group, p, is_first, d, thread);
  own_registers(d, n * 2, false);
  find_bounds();
  ++cur->products;
  cur->product_pc = pc;
  if (++p.threads == GROUP)
    issue(group, p);
  else if (config.random && !(rnd() & 31))
    yield();
}
void wgmma_commit() { cur->product_groups.push_back(cur->products); }
void wgmma_wait(int keep) {
  const Pc pc = CALLER;
  if (overwrites) settle_overwrite();
  if (int(cur->product_groups.size()) <= keep) return;
  const uint32_t upto = cur->product_groups[cur->product_groups.size() - 1 - keep];
  Warpgroup& group = warpgroup_of(*cur);
  while (group.issued < upto) wait_on(&group, A_WGMMA_GROUP, upto, pc);
  run_products(*cur->cta, group, upto);
  if (upto) learn(cur->clock, group.agent, group.times[upto - 1]);
  give_back(group, thread_of_group(*cur), upto);
  auto& owned = cur->in_flight;
  owned.erase(
      std::remove_if(owned.begin(), owned.end(), [&](const Registers& r) { return r.product < upto; }),
      owned.end());
  find_bounds();
}

}  // namespace cpucuda
