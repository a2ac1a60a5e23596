"""Compares the timed calls of two sides: by the rounds of one run, else by a noise floor."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from profiler.compare.comparability import CORRECTNESS, Difference
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.evidence import timing_mode
from profiler.evidence.side import Latency, Side
from profiler.statistics.decision import Decision
from profiler.statistics.facts import note_same_code
from profiler.statistics.live_pair import LIVE_PAIR, judge_live_pair
from profiler.statistics.noise_floor import (
    STORED_BASELINE,
    NoiseFloor,
    judge_stored_baseline,
    shorter_ns,
    typical_ns,
    typical_pair_ns,
)
from profiler.statistics.verdict import Verdict

# Properties that have to be equal for two latencies to be compared.
_WITHIN_RUN = (CORRECTNESS, "GPU", "compute capability", "workload", "dtype", "evidence")
# One run has one driver. The settings of ncu do not matter, since calls are timed without it.
_BETWEEN_RUNS = (*_WITHIN_RUN, "driver")
_ROUNDS = 25  # rounds to suggest for a new collection where nothing says how many are needed


@dataclass(frozen=True)
class LatencyComparison:
    """The timed calls of two sides in one mode."""

    mode: str  # timer, cache and clock: "events; cache warm; clock none"
    a: Latency | None  # None: not timed in this mode
    b: Latency | None
    decision: Decision
    settle: str = ""  # a command whose data would settle the question; "" where none is needed or would
    floor: NoiseFloor | None = None  # how far equal builds lie apart in this mode; None: not known
    floor_command: str = ""  # a command that measures the floor; "" where it is known, or not needed

    @property
    def verdict(self) -> Verdict:
        """The verdict of the decision."""
        return self.decision.verdict

    @property
    def live(self) -> bool:
        """Whether both sides were timed in alternating rounds of one run."""
        return self.decision.rule == LIVE_PAIR

    @property
    def a_ns(self) -> float | None:
        """The typical latency of A beside B, in ns (see statistics.typical_pair_ns); None without samples."""
        return _latencies_ns(self.a, self.b)[0]

    @property
    def b_ns(self) -> float | None:
        """The typical latency of B beside A, in ns."""
        return _latencies_ns(self.a, self.b)[1]


def compare_latencies(
    a: Side, b: Side, differences: Iterable[Difference], noise: NoiseModel = UNKNOWN_NOISE
) -> tuple[LatencyComparison, ...]:
    """One comparison for every mode in which a side was timed, in B's order.

    The samples are those of the newest run in which both sides were timed, unless a side was built anew since
    then: in that case the newest of each side. Of two runs of one version each side has its own samples.
    `differences` are those that `find_differences` found: some of them rule a comparison out.
    """
    blocking = [difference for difference in differences if difference.blocks]
    modes = dict.fromkeys(latency.mode for latency in (*b.latencies, *a.latencies))
    return tuple(
        _note_machine_code(_compare_mode(a, b, mode, blocking, noise), a, b, noise) for mode in modes
    )


def noise_command(version: str, workload: str | None, mode: str) -> str:
    """The command that gives the A/A pairs of a noise floor for calls timed in this mode."""
    words = shlex.join([version, *(["--workloads", workload] if workload else [])])
    return timing_mode.noise_command(words, mode)


def _note_machine_code(
    comparison: LatencyComparison, a: Side, b: Side, noise: NoiseModel
) -> LatencyComparison:
    """The comparison after a look at the machine code: with equal code nothing got faster or slower."""
    if not comparison.verdict.traits.moved:
        return comparison
    if comparison.a is None or comparison.b is None or not (a.version and b.version):
        return comparison
    same = noise.same_code((comparison.a.run_id, a.version), (comparison.b.run_id, b.version))
    return replace(comparison, decision=note_same_code(comparison.decision, same))


def _compare_mode(
    a: Side, b: Side, mode: str, blocking: Sequence[Difference], noise: NoiseModel
) -> LatencyComparison:
    # Two runs of one version are compared as they are. For two versions any of their newest runs will do.
    own_run_only = a.version == b.version and a.run_id != b.run_id
    of_a, of_b = (
        [
            latency
            for latency in side.latencies
            if latency.mode == mode and (not own_run_only or latency.run_id == side.run_id)
        ]
        for side in (a, b)
    )
    if not of_a or not of_b:
        lacking = "A" if not of_a else "B"
        decision = Decision(Verdict.MISSING, f"{mode}: not timed in {lacking}", LIVE_PAIR)
        return LatencyComparison(mode, *_newest(of_a, of_b), decision, _collect_command(a, b, mode, _ROUNDS))
    x, y, live = _choose(of_a, of_b)
    must_match = _WITHIN_RUN if live else _BETWEEN_RUNS
    if words := [difference.words for difference in blocking if difference.field in must_match]:
        rule = LIVE_PAIR if live else STORED_BASELINE
        return LatencyComparison(mode, x, y, Decision(Verdict.NOT_COMPARABLE, "; ".join(words), rule))
    floor = _floor(a, b, mode, shorter_ns(x.ns, y.ns), noise)
    lacks_floor = floor is None or not floor.judges
    floor_command = noise_command(b.version, b.workload, mode) if lacks_floor and b.version else ""
    if live and a.version == b.version:
        decision = Decision(Verdict.SAME, "the same samples of one run", LIVE_PAIR, effect=0.0)
        rounds = 0
    elif live:
        process_sd = floor.process_sd if floor is not None and floor.judges else None
        decision = judge_live_pair(x, y, process_sd=process_sd)
        rounds = decision.rounds_needed or 0
    else:
        sides = "two versions that share no rounds" if x.run_id == y.run_id else "two runs"
        decision = judge_stored_baseline(x.ns, y.ns, floor, sides=sides)
        rounds = _ROUNDS if decision.rerun_tells else 0
    unsettled = decision.verdict is Verdict.UNCLEAR and rounds
    settle = _collect_command(a, b, mode, rounds) or floor_command if unsettled else ""
    return LatencyComparison(mode, x, y, decision, settle, floor, floor_command)


def _floor(a: Side, b: Side, mode: str, ns: float, noise: NoiseModel) -> NoiseFloor | None:
    """The noise floor of both sides: of two GPUs the wider one, and none where only one is known."""
    floors = [
        noise.floor(gpu, mode, ns, b.family or "", b.session.driver or "")
        for gpu in dict.fromkeys((b.gpu or "", a.gpu or b.gpu or ""))
    ]
    known = [floor for floor in floors if floor is not None and floor.judges]
    if len(known) == len(floors):
        return max(known, key=lambda floor: floor.changed_limit)
    return next((floor for floor in floors if floor is None or not floor.judges), None)


def _choose(of_a: Sequence[Latency], of_b: Sequence[Latency]) -> tuple[Latency, Latency, bool]:
    """The samples to compare, and whether they come from one run's rounds. The inputs are newest first."""
    by_run = {latency.run_id: latency for latency in of_a if latency.build == of_a[0].build}
    for y in of_b:
        x = by_run.get(y.run_id)
        if x is not None and y.build == of_b[0].build and not set(x.rounds).isdisjoint(y.rounds):
            return x, y, True
    return of_a[0], of_b[0], False


def _newest(of_a: Sequence[Latency], of_b: Sequence[Latency]) -> tuple[Latency | None, Latency | None]:
    return (of_a[0] if of_a else None), (of_b[0] if of_b else None)


def _collect_command(a: Side, b: Side, mode: str, rounds: int) -> str:
    """The command that times both in alternating rounds; "" where no collection can do that."""
    if not timing_mode.is_own_mode(mode):
        return ""
    if not a.version or not b.version or a.version == b.version or a.family != b.family:
        return ""
    words = ["profiler", "collect", b.version, "--against", a.version]
    if b.workload:
        words += ["--workloads", b.workload]
    return shlex.join([*words, "--rounds", str(rounds)])


def _latencies_ns(a: Latency | None, b: Latency | None) -> tuple[float | None, float | None]:
    if a is None or b is None or not len(a.ns) or not len(b.ns):
        return _latency_ns(a), _latency_ns(b)
    a_ns, b_ns = typical_pair_ns(a.ns, b.ns)
    return float(a_ns), float(b_ns)


def _latency_ns(latency: Latency | None) -> float | None:
    return float(typical_ns(latency.ns)) if latency is not None and len(latency.ns) else None
