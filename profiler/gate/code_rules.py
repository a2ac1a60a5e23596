"""The gate's rules for one function of a library against what it was: worse, better, or unclear."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from profiler.build.occupancy import Occupancy, no_block_words, occupancy
from profiler.evidence.gpu_arch import find_architecture
from profiler.evidence.opcodes import is_matrix_multiply
from profiler.gate.code_lock import NO_ACCESSES, AccessCost, AccessFacts, PinnedFunction
from profiler.sass.loop_facts import LoopFacts
from profiler.statistics.verdict import Verdict

# Sizes of a block that are tried where the launch bounds do not say one.
_BLOCKS = (64, 128, 256, 512, 1024)
_WIDTH = re.compile(r"(LDG|STG|LDS|STS|LDGSTS|LDSM|STSM|LD|ST)\.(?:[US])?(\d+)")
_MATRICES = {"LDSM": 32, "STSM": 32}  # bits a thread of each matrix, which the width counts
_NARROWER = 0.9  # the mean width of accesses becomes less than this share of what it was
_EQUAL_BYTES = 0.12  # how far the bytes of both sides may lie apart where they move the same
SPILLS, REGISTERS, STACK, SHARED = "spills", "registers", "stack", "shared memory"
MATRICES, WIDTH, CLUSTER = "matrix instructions", "memory width", "cluster"
CONFLICTS, SECTORS, ADDRESSES = "bank conflicts", "excess sectors", "addresses"
_EQUAL_EXCESS = 0.011  # of a sum that a lock rounds to two digits
_EQUAL_SHARE = 1e-3


class CodeFinding(NamedTuple):
    """What one rule says of one function."""

    concept: str
    verdict: Verdict  # worse, better, unclear, or changed where it does not matter
    line: str
    effect: float | None = None  # as a share of what it was; None from 0


def judge_function(a: PinnedFunction, b: PinnedFunction) -> Iterator[CodeFinding]:
    """What differs between a function as it was pinned and as it is; nothing where no rule finds anything."""
    spills = list(_spills(a, b))
    yield from spills
    yield from _stack(a, b, is_said=bool(spills))
    is_paid = any(one.verdict is Verdict.BETTER for one in spills)
    for one in _blocks(a, b):
        if one.verdict is Verdict.WORSE and is_paid:
            one = one._replace(verdict=Verdict.UNCLEAR, line=f"{one.line}; but it spills less")
        yield one
    if a.dynamic_shared_bytes is not None and b.dynamic_shared_bytes is None:
        line = f"dynamic shared memory: {a.dynamic_shared_bytes} B of a block → not known"
        yield CodeFinding(SHARED, Verdict.MISSING, line)
    if a.cluster != b.cluster:
        line = f"blocks of a cluster: {_cluster(a)} → {_cluster(b)}; whether it still fits is not known"
        yield CodeFinding(CLUSTER, Verdict.UNCLEAR, line)
    has_more_spills = any(one.verdict is not Verdict.BETTER for one in spills)
    yield from _accesses(a, b, is_said=has_more_spills)
    if a.loops is None or b.loops is None:
        if a.unscheduled != b.unscheduled:
            side = "in the lock" if a.loops is None else "now"
            yield CodeFinding(SPILLS, Verdict.MISSING, f"its instructions could not be read {side}")
        return
    yield from _matrices(a.loops, b.loops)
    yield from _widths(a.loops, b.loops)


def _cluster(one: PinnedFunction) -> str:
    return " × ".join(map(str, one.cluster)) or "none"


def _share(a: float, b: float) -> float | None:
    return (b - a) / a if a else None


def _spills(a: PinnedFunction, b: PinnedFunction) -> Iterator[CodeFinding]:
    """More in an innermost loop is worse; elsewhere nobody knows how often they run."""
    if a.loops is None or b.loops is None:
        return
    was, now = _comparable(a.loops, b.loops)
    if (was.spills, was.inner_spills) == (now.spills, now.inner_spills):
        return
    what = "spills" if now.is_marked and was.is_marked else "accesses of local memory (spills, or arrays)"
    depths = max(len(was.spills), len(now.spills))
    counts = [[*side.spills, *[0] * (depths - len(side.spills))] for side in (was, now)]
    # Of the deepest loops first: fewer there are worth some outside.
    order = [[side.inner_spills, *reversed(count)] for side, count in zip((was, now), counts, strict=True)]
    line = f"{what}: {_depth_words(was)} → {_depth_words(now)}"
    if b.stack_bytes != a.stack_bytes:
        line += f"; stack: {a.stack_bytes} → {b.stack_bytes} B"
    if b.shared_spill_bytes != a.shared_spill_bytes:
        line += f"; in shared memory: {a.shared_spill_bytes} → {b.shared_spill_bytes} B of a block"
    verdict = Verdict.BETTER if order[1] < order[0] else Verdict.UNCLEAR
    if now.inner_spills > was.inner_spills:
        verdict = Verdict.WORSE
    elif verdict is Verdict.UNCLEAR:
        where = "outside innermost loops" if any(now.spills[1:]) else "outside loops"
        if not b.is_kernel:
            where = "in a function that kernels call"
        line += f"; {where}: how often they run is not known"
    yield CodeFinding(SPILLS, verdict, line, _share(was.spill_count, now.spill_count))


def _comparable(a: LoopFacts, b: LoopFacts) -> tuple[LoopFacts, LoopFacts]:
    """Both sides' spills; one that ptxas would have marked, beside one that it did, has none."""
    if a.is_marked == b.is_marked:
        return a, b
    marked = [side if side.is_marked else LoopFacts(side.opcodes, ()) for side in (a, b)]
    if not any(side.spills for side in marked):  # nothing is marked on either side: accesses count
        return a, b
    return marked[0], marked[1]


def _depth_words(loops: LoopFacts) -> str:
    """`12 (8 in an innermost loop, 4 outside loops)`."""
    if not loops.spills:
        return "none"
    outside = loops.spills[0]
    between = loops.spill_count - outside - loops.inner_spills
    parts = {
        "in an innermost loop": loops.inner_spills,
        "in an outer loop": between,
        "outside loops": outside,
    }
    said = [f"{count} {where}" for where, count in parts.items() if count > 0]
    return said[0] if len(said) == 1 else f"{loops.spill_count} ({', '.join(said)})"


def _stack(a: PinnedFunction, b: PinnedFunction, *, is_said: bool) -> Iterator[CodeFinding]:
    """More stack without more spills is an array, or calls; of spills their line says it."""
    if a.stack_bytes is None or b.stack_bytes is None or a.stack_bytes == b.stack_bytes or is_said:
        return
    verdict = Verdict.WORSE if b.stack_bytes > a.stack_bytes else Verdict.BETTER
    line = f"stack: {a.stack_bytes} → {b.stack_bytes} B of a thread"
    yield CodeFinding(STACK, verdict, line, _share(a.stack_bytes, b.stack_bytes))


def _blocks(a: PinnedFunction, b: PinnedFunction) -> Iterator[CodeFinding]:
    """Registers and shared memory matter where fewer or more blocks of the function fit on an SM."""
    if a.registers is None or b.registers is None or not b.is_kernel:
        return
    is_whole = a.dynamic_shared_bytes is not None and b.dynamic_shared_bytes is not None
    if not is_whole:
        a, b = (replace(side, dynamic_shared_bytes=None) for side in (a, b))
    differs = [
        (REGISTERS, f"registers: {a.registers} → {b.registers}", a.registers, b.registers),
        (
            SHARED,
            f"{'' if is_whole else 'static '}shared memory: {_shared(a)} → {_shared(b)} B of a block",
            _shared(a),
            _shared(b),
        ),
        ("launch bounds", f"launch bounds: {_bounds(a)} → {_bounds(b)}", a.max_threads, b.max_threads),
    ]
    moved = [one for one in differs if one[2] != one[3]]
    if not moved:
        return
    concept = moved[0][0]
    effects = {name: _share(was, now) if was and now else None for name, _, was, now in moved}
    line = "; ".join(words for _, words, _, _ in moved)
    if find_architecture(b.arch) is None:
        is_more = any((one[3] or 0) > (one[2] or 0) for one in moved)
        verdict = Verdict.UNCLEAR if is_more else Verdict.CHANGED
        yield CodeFinding(concept, verdict, f"{line}; the limits of {b.arch} are not known", effects[concept])
        return
    is_known = a.max_threads is not None and a.max_threads == b.max_threads
    bounds = [one for one in (b.max_threads, a.max_threads) if one]
    sizes = tuple(dict.fromkeys(bounds)) if is_known else (*bounds, *_BLOCKS)
    fits = [(size, *(_fit(side, size) for side in (a, b))) for size in sizes]
    worst = min(fits, key=lambda fit: (fit[2] - fit[1]) / max(fit[1], 1))
    best = max(fits, key=lambda fit: fit[2] - fit[1])
    size, was_blocks, now_blocks = worst if worst[2] < worst[1] else best
    if now_blocks == was_blocks:
        yield CodeFinding(concept, Verdict.CHANGED, f"{line}; as many blocks fit on an SM", effects[concept])
        return
    line += (
        f"; {now_blocks} block{'s' * (now_blocks != 1)} of {size} threads on an SM instead of {was_blocks}"
    )
    if not is_known:
        line += "; its block size is not known"
    if not now_blocks and (why := no_block_words(b.arch, b.registers or 0, size, _shared(b))):
        line += f" ({why})"
    tight = _occupancy(b if now_blocks < was_blocks else a, size).limiters
    concept = next((name for name, _, _, _ in moved if name in tight), concept)
    verdict = Verdict.BETTER
    if now_blocks < was_blocks:
        verdict = Verdict.WORSE if is_known or all(fit[2] < fit[1] for fit in fits) else Verdict.UNCLEAR
    yield CodeFinding(concept, verdict, line, effects[concept])


def _shared(one: PinnedFunction) -> int:
    """Of a block, with its dynamic part where it is known."""
    return one.shared_bytes + (one.dynamic_shared_bytes or 0)


def _bounds(one: PinnedFunction) -> str:
    return "none" if one.max_threads is None else f"{one.max_threads} threads"


def _fit(one: PinnedFunction, threads: int) -> int:
    """Blocks of one function on an SM."""
    return _occupancy(one, threads).blocks


def _occupancy(one: PinnedFunction, threads: int) -> Occupancy:
    return occupancy(one.arch, one.registers or 0, threads, _shared(one))


def _total(loops: LoopFacts) -> Counter[str]:
    total: Counter[str] = Counter()
    for counts in loops.opcodes:
        total.update(counts)
    return total


def _matrices(a: LoopFacts, b: LoopFacts) -> Iterator[CodeFinding]:
    """Matrix instructions that are gone are worse; of another shape they are not known to be."""
    was, now = (
        {name: count for name, count in _total(side).items() if is_matrix_multiply(name)} for side in (a, b)
    )
    if was.keys() == now.keys():
        return
    line = f"matrix instructions: {_named(was)} → {_named(now)}"
    verdict = Verdict.UNCLEAR
    if not now or not was:
        verdict = Verdict.BETTER if now else Verdict.WORSE
    yield CodeFinding(MATRICES, verdict, line, _share(sum(was.values()), sum(now.values())))


def _named(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def _widths(a: LoopFacts, b: LoopFacts) -> Iterator[CodeFinding]:
    """More and narrower accesses for the same bytes are worse in a loop, and unclear outside."""
    for depth in reversed(range(max(len(a.opcodes), len(b.opcodes)))):
        was, now = (_by_base(side.opcodes[depth] if depth < len(side.opcodes) else {}) for side in (a, b))
        for base in sorted(was.keys() & now.keys()):
            means = [_bits(side[base]) / sum(side[base].values()) for side in (was, now)]
            ratio = means[1] / means[0]
            if _NARROWER <= ratio <= 1 / _NARROWER:
                continue
            is_same_work = abs(_bits(now[base]) / _bits(was[base]) - 1) <= _EQUAL_BYTES
            verdict = Verdict.BETTER if ratio > 1 and is_same_work else Verdict.UNCLEAR
            if ratio < 1 and is_same_work and depth:
                verdict = Verdict.WORSE
            elif ratio > 1 and not is_same_work:
                verdict = Verdict.CHANGED
            line = f"{base} {_where(depth)}: {_width_words(was[base])} a thread → {_width_words(now[base])}"
            yield CodeFinding(WIDTH, verdict, line, ratio - 1)


def _accesses(a: PinnedFunction, b: PinnedFunction, *, is_said: bool) -> Iterator[CodeFinding]:
    """What accesses cost in excess, and how many are not known; nothing where a lock does not say it.

    is_said: whether more spills are, out of which addresses come that nobody knows.
    """
    was, now = a.accesses, b.accesses
    if was is None:
        return
    if now is None:
        yield CodeFinding(ADDRESSES, Verdict.MISSING, "what its accesses to memory cost is known no more")
        return
    unknown = [sum(side.unknown) for side in (was, now)]
    doubts = ["", ""]
    if was.block != now.block:
        doubts = [f"for blocks of {_block(now)} threads instead of {_block(was)}"] * 2
    elif unknown[0] != unknown[1]:
        doubts[unknown[1] > unknown[0]] = f"accesses that are not known: {unknown[0]} → {unknown[1]}"
    yield from _excess(CONFLICTS, "wavefronts in excess", was.shared, now.shared, *doubts)
    yield from _excess(SECTORS, "sectors in excess", was.sectors, now.sectors, *doubts)
    totals = [
        count + sum(one.places for one in (*side.shared, *side.sectors))
        for count, side in zip(unknown, (was, now), strict=True)
    ]
    shares = [count / max(total, 1) for count, total in zip(unknown, totals, strict=True)]
    if not is_said and unknown[1] > unknown[0] and shares[1] > shares[0] + _EQUAL_SHARE:
        words = [f"{count} of {total}" for count, total in zip(unknown, totals, strict=True)]
        line = f"accesses whose addresses are not known: {' → '.join(words)}"
        yield CodeFinding(ADDRESSES, Verdict.UNCLEAR, line)


def _block(facts: AccessFacts) -> str:
    return " × ".join(map(str, facts.block))


def _excess(
    concept: str,
    what: str,
    a: Sequence[AccessCost],
    b: Sequence[AccessCost],
    doubt_of_more: str,
    doubt_of_less: str,
) -> Iterator[CodeFinding]:
    """The deepest loops in which the excess differs decide: more of each access there is worse.

    Doubts: why more, or less, of it may be no change; "" where nothing speaks for that.
    """
    for depth in reversed(range(max(len(a), len(b)))):
        was, now = (side[depth] if depth < len(side) else NO_ACCESSES for side in (a, b))
        if abs(now.excess - was.excess) < _EQUAL_EXCESS:
            continue
        compared = (was, now) if was.places and now.places else (_sum(a), _sum(b))
        shares = [side.excess / side.cost if side.cost else 0 for side in compared]
        line = f"{what} {_where(depth)}: {_cost_words(was)} → {_cost_words(now)}"
        is_more = now.excess > was.excess
        moved = shares[1] - shares[0] if is_more else shares[0] - shares[1]
        verdict = Verdict.WORSE if is_more else Verdict.BETTER
        if moved < _EQUAL_SHARE:  # unrolled, or other accesses beside it
            verdict = Verdict.UNCLEAR if is_more and moved < -_EQUAL_SHARE else Verdict.CHANGED
            line += "; no more of each request" if is_more else "; no less of each request"
        elif is_more and not depth:
            verdict, line = Verdict.UNCLEAR, f"{line}; how often they run is not known"
        elif doubt := doubt_of_more if is_more else doubt_of_less:
            verdict, line = Verdict.UNCLEAR, f"{line}; {doubt}"
        yield CodeFinding(concept, verdict, line, _share(was.excess, now.excess))
        return


def _sum(costs: Sequence[AccessCost]) -> AccessCost:
    return AccessCost(*(sum(numbers) for numbers in zip(*costs, strict=True))) if costs else NO_ACCESSES


def _cost_words(one: AccessCost) -> str:
    accesses = f"{one.places} access{'es' * (one.places != 1)}"
    return f"{one.excess:.4g} of {one.cost:.4g} in {accesses}" if one.places else "no access"


def _where(depth: int) -> str:
    return f"in {depth} loop{'s' * (depth > 1)}" if depth else "outside loops"


def _width_words(widths: Mapping[int, int]) -> str:
    return ", ".join(f"{count} of {bits // 8} B" for bits, count in sorted(widths.items(), reverse=True))


def _by_base(counts: Mapping[str, int]) -> dict[str, Counter[int]]:
    """How many accesses there are of each width in bits, by opcode."""
    found: dict[str, Counter[int]] = {}
    for name, count in counts.items():
        if match := _WIDTH.fullmatch(name):
            bits = int(match[2]) * _MATRICES.get(match[1], 1)
            found.setdefault(match[1], Counter())[bits] += count
        elif name in _MATRICES:  # of one matrix
            found.setdefault(name, Counter())[_MATRICES[name]] += count
    return found


def _bits(widths: Mapping[int, int]) -> int:
    return sum(bits * count for bits, count in widths.items())
