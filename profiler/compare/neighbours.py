"""What the launches of one comparison say of each other: doubt about a size or whose work, and noise."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

from profiler.compare.clock_drift import HEADLINE
from profiler.compare.launch_facts import build_facts
from profiler.compare.match_launches import PairedBy, plain_template
from profiler.compare.pair_comparison import PairComparison
from profiler.compare.same_code import CHANGED, SAME
from profiler.compare.workload_change import (
    WorkloadChange,
    WorkRatio,
    instructions_ratio,
    launch_code_change,
    stored_the_same,
    traffic_ratio,
)
from profiler.evidence import formatting
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.naming import brief_list
from profiler.evidence.values import Value
from profiler.statistics.decision import change_text
from profiler.statistics.verdict import Verdict

_TIME = "gpu__time_duration.sum"
_HELD, _HELD_MOVED = "profiler__replayer_bytes_mem_accessible.sum", 1.1
_GREW = 1.25  # times the instructions: less is no sign of more data
_EQUAL_WORK = 1.01  # times the instructions: launches of unchanged code that did the same
_SIBLINGS = 4  # pairs of one kernel, of whatever grid, that show how its times wobble
_AS_FAR = 2.0  # how many times as far as its siblings the other way a time may move and be noise


def judge_by_neighbours(
    pairs: Sequence[PairComparison],
    table: MetricTable,
    only_in_a: Sequence[Launch] = (),
    only_in_b: Sequence[Launch] = (),
) -> list[PairComparison]:
    """The pairs with those unclear that the others, or launches without a partner, cast doubt on."""
    doubted = _doubt_memory(_doubt_sizes(_doubt_whose_work(pairs, only_in_a, only_in_b)))
    return _doubt_noise(_doubt_data(doubted, only_in_a, only_in_b), table)


def _doubt_whose_work(
    pairs: Sequence[PairComparison], only_in_a: Sequence[Launch], only_in_b: Sequence[Launch]
) -> list[PairComparison]:
    """The pairs, those unclear that may do in B what another kernel did in A, or the other way round.

    A kernel that is fused with the one before it executes more and takes longer, and the other is gone. So it
    may be where the launches that a side alone has took at least as long as what all such pairs lost, and for
    pairs that got better where B splits a kernel. The code must not be known to be equal.
    """
    times = [[launch.values.number(_TIME) for launch in side] for side in (only_in_a, only_in_b)]
    judged = list(pairs)
    if None in (*times[0], *times[1]):
        return judged
    gone, new = (float(sum(filter(None, side))) for side in times)
    for verdict, spare, launches, side in (
        (Verdict.WORSE, gone - new, only_in_a, "A"),
        (Verdict.BETTER, new - gone, only_in_b, "B"),
    ):
        moved = [pair for pair in pairs if _may_have_other_work(pair, verdict)]
        if spare <= 0 or not moved or spare < sum(map(_time_moved, moved)):
            continue
        kernels = brief_list(list(dict.fromkeys(launch.base_name for launch in launches)))
        took = formatting.quantity(Value(spare, "ns"))
        for index, pair in enumerate(judged):
            ratio = instructions_ratio(pair.a, pair.b)
            if ratio is not None and any(pair is other for other in moved):
                whose = "is done here now" if verdict is Verdict.WORSE else "was done here before"
                reason = f"{ratio.words}, and {side} alone has {kernels} ({took}): perhaps its work {whose}"
                code = launch_code_change(pair.a, pair.b)
                judged[index] = pair.doubted(WorkloadChange(Verdict.UNCLEAR, reason, "", code))
    return judged


def _may_have_other_work(pair: PairComparison, verdict: Verdict) -> bool:
    """Whether the pair has this verdict, or none, and executed far more or fewer instructions."""
    ratio = instructions_ratio(pair.a, pair.b)
    if (
        pair.verdict not in (verdict, Verdict.UNCLEAR)
        or pair.workload_change
        or ratio is None
        or not ratio.moved(_GREW)
    ):
        return False
    if pair.paired_by is PairedBy.DECLARED or (ratio.times > 1) is not (verdict is Verdict.WORSE):
        return False
    return launch_code_change(pair.a, pair.b).word != SAME


def _time_moved(pair: PairComparison) -> float:
    """How far the durations of all launches of a pair lie apart, in ns; 0 where a side has none."""
    change = pair.headline
    if change is None or change.a.number is None or change.b.number is None:
        return 0.0
    return len(pair.launches[0]) * abs(float(change.b.number) - float(change.a.number))


def _doubt_sizes(pairs: Sequence[PairComparison]) -> list[PairComparison]:
    """The pairs, those unclear that executed more or less beside one that is perhaps of another size.

    Both sides ran one program: the data that made the one kernel do more work may have made the other. Of a
    doubt that other code could explain, only what moved in its direction is doubted, on an equal grid. A
    kernel of unchanged code that did other work on another grid is such a sign too.
    """
    signs: dict[bool, PairComparison] = {}
    for pair in pairs:
        change = pair.workload_change
        if change is None:
            continue
        ratio = instructions_ratio(pair.a, pair.b)
        if change.whatever_the_code:
            signs = {True: pair, False: pair, **signs}
        elif ratio and ratio.moved(_GREW) and (change.verdict is Verdict.NOT_COMPARABLE or not change.sizes):
            signs.setdefault(ratio.times > 1, pair)
    if not signs:
        return list(pairs)
    judged = []
    for pair in pairs:
        ratio = instructions_ratio(pair.a, pair.b) if pair.verdict.traits.moved else None
        doubted = signs.get(ratio.times > 1) if ratio and ratio.moved(_GREW) else None
        if ratio is None or doubted is None or pair.paired_by is PairedBy.DECLARED or pair.workload_change:
            judged.append(pair)
            continue
        reason = f"{ratio.words}, as {doubted.kernel} beside it: perhaps another problem size"
        code = launch_code_change(pair.a, pair.b)
        judged.append(pair.doubted(WorkloadChange(Verdict.UNCLEAR, reason, "", code)))
    return judged


def _doubt_memory(pairs: Sequence[PairComparison]) -> list[PairComparison]:
    """The pairs, those unclear whose time moved with the memory that the program holds, by unchanged code.

    ncu notes how many bytes it would have to save to replay a launch. Equal work holds equally many, to the
    byte in 20 public reports of three programs; another problem size holds others. Changed code may well
    hold more or less; it is doubted from a quarter on, where the traffic moved alike or is not known.
    """
    judged = []
    for pair in pairs:
        times = [launch.values.number(_TIME) for launch in (pair.a, pair.b)]
        held = [launch.values.number(_HELD) for launch in (pair.a, pair.b)]
        if pair.verdict.traits.moved and not pair.workload_change and all(times) and all(held):
            code = launch_code_change(pair.a, pair.b)
            ratio = WorkRatio("memory held by the program", float(held[1] or 0) / float(held[0] or 1))
            is_asked = pair.paired_by is not PairedBy.DECLARED
            if code.word == CHANGED:
                traffic = traffic_ratio(pair.a, pair.b)
                is_asked &= ratio.moved(_GREW) and (traffic is None or traffic.is_like(ratio))
            grew = float(times[1] or 0) > float(times[0] or 0)
            if is_asked and ratio.moved(_HELD_MOVED) and (ratio.times > 1) is grew:
                moved = "grew" if grew else "shrank"
                reason = f"{ratio.words}, and the time {moved} with it: perhaps another problem size"
                pair = pair.doubted(WorkloadChange(Verdict.UNCLEAR, reason, "", code))
        judged.append(pair)
    return judged


def _doubt_data(
    pairs: Sequence[PairComparison], only_in_a: Sequence[Launch], only_in_b: Sequence[Launch]
) -> list[PairComparison]:
    """The pairs, those unclear of a kernel that a side launched for longer on grids the other never had.

    One program on other data: 13 chunks of a sequence instead of 5. Where such a kernel executed more or less
    on the grids of both, and its code is not known to have changed, the data may have done that as well.
    """
    judged = list(pairs)
    for place, alone in enumerate((only_in_a, only_in_b)):
        for kernel in dict.fromkeys(_kernel(launch) for launch in alone):
            own = [index for index, pair in enumerate(pairs) if _kernel(pair.launches[place][0]) == kernel]
            paired = [launch for index in own for launch in pairs[index].launches[place]]
            grids = {launch.grid for index in own for side in pairs[index].launches for launch in side}
            spare = [launch for launch in alone if _kernel(launch) == kernel and launch.grid not in grids]
            times = [sum(launch.values.number(_TIME) or 0.0 for launch in of) for of in (spare, paired)]
            if None in grids or times[0] <= times[1]:
                continue
            words = f"{'AB'[place]} alone has {len(spare)} launches of it on other grids"
            for index in own:
                ratio = instructions_ratio(pairs[index].a, pairs[index].b)
                if ratio and _may_be_other_data(judged[index], ratio):
                    reason = f"{ratio.words}, and {words}: perhaps other data"
                    code = launch_code_change(pairs[index].a, pairs[index].b)
                    judged[index] = judged[index].doubted(WorkloadChange(Verdict.UNCLEAR, reason, "", code))
    return judged


def _kernel(launch: Launch) -> Hashable:
    """What launches of one kernel of one build share, whatever their grid."""
    return launch.base_name, plain_template(launch), launch.block, build_facts(launch)


def _may_be_other_data(pair: PairComparison, ratio: WorkRatio) -> bool:
    """Whether a pair moved, and other data of unchanged code may have done it."""
    if not pair.verdict.traits.moved or pair.workload_change or pair.paired_by is PairedBy.DECLARED:
        return False
    if _kernel(pair.a) != _kernel(pair.b) or launch_code_change(pair.a, pair.b).word == CHANGED:
        return False
    return not ratio.stayed(None if ratio.is_by_rate else _EQUAL_WORK) and not stored_the_same(pair.a, pair.b)


def _doubt_noise(pairs: Sequence[PairComparison], table: MetricTable) -> list[PairComparison]:
    """The durations of one launch per side that their siblings show to be noise, as unclear.

    Siblings are launches of a kernel whose code is not known to have changed and that executed as much. Of
    one size they are one measurement: their sum has to move by more than the threshold. Of any size, a time
    is noise that moves little further than siblings move the other way.
    """
    headline = table.by_concept.get(HEADLINE)
    moves = {index: move for index, pair in enumerate(pairs) if (move := _unexplained_move(pair))}
    if headline is None or not any(pairs[index].verdict.traits.moved for index in moves):
        return list(pairs)
    by_kernel: dict[Hashable, list[int]] = defaultdict(list)
    by_size: dict[Hashable, list[int]] = defaultdict(list)
    for index in moves:
        pair = pairs[index]
        kernel: Hashable = (pair.a.base_name, plain_template(pair.a), build_facts(pair.a))
        by_kernel[kernel].append(index)
        by_size[kernel, pair.a.grid, pair.a.block].append(index)
    reasons: dict[int, str] = {}
    for alike in by_size.values():
        before, after = (sum(moves[index][side] for index in alike) for side in (0, 1))
        if len(alike) > 1 and abs(after / before - 1) <= headline.threshold:
            words = f"{len(alike)} launches alike took {change_text(after / before - 1, 1)} together"
            reasons |= dict.fromkeys(alike, words)
    for siblings in by_kernel.values():
        logs = {index: math.log(moves[index][1] / moves[index][0]) for index in siblings}
        if len(siblings) < _SIBLINGS:
            continue
        most, least = max(logs.values()), min(logs.values())
        for index, log in logs.items():
            against = -least if log > 0 else most
            if math.expm1(max(against, 0.0)) > headline.threshold and abs(log) <= _AS_FAR * against:
                both = f"{change_text(math.expm1(least), 0)} to {change_text(math.expm1(most), 0)}"
                reasons.setdefault(index, f"{len(siblings)} launches of equal work moved by {both}")
    judged = list(pairs)
    for index, why in reasons.items():
        pair = judged[index]
        if pair.verdict.traits.moved:
            judged[index] = pair.undecided(f"{why}: one launch per side does not decide")
    return judged


def _unexplained_move(pair: PairComparison) -> tuple[float, float] | None:
    """Both durations of a pair of single launches that did equal work by code not known to be other."""
    change = pair.headline
    if change is None or change.p is not None or pair.is_sampled or pair.workload_change:
        return None
    work = instructions_ratio(pair.a, pair.b) or traffic_ratio(pair.a, pair.b)
    # One that waits for flags in memory executes as many instructions as it waits, and stores the same.
    limit = None if work and work.is_by_rate else _EQUAL_WORK  # rates are not exact
    is_equal = work is None or work.stayed(limit) or stored_the_same(pair.a, pair.b)
    if not change.a.number or not change.b.number or not is_equal:
        return None
    if pair.verdict is Verdict.NOT_COMPARABLE or launch_code_change(pair.a, pair.b).word == CHANGED:
        return None
    return float(change.a.number), float(change.b.number)
