"""How the timed calls of two sides compare: by the rounds of one run, else by a noise floor."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from profiler.compare.comparability import CORRECTNESS, Difference
from profiler.evidence import Latency, Side
from profiler.statistics import Decision, Floor, Verdict, facts, floor, pair

FloorLookup = Callable[[str, str, float], Floor | None]  # by GPU, mode and the latency of A in ns
RunVersion = tuple[str, str]  # run id, version
CodeLookup = Callable[
    [RunVersion, RunVersion], bool | None
]  # whether both ran one machine code; None: unknown

_ALWAYS = (CORRECTNESS, "GPU", "compute capability", "workload", "dtype", "evidence")
_BETWEEN_RUNS = (*_ALWAYS, "driver")  # one run has one driver; ncu's settings are no matter of latency
_ROUNDS = 25


@dataclass(frozen=True)
class LatencyComparison:
    """The calls of two versions in one mode."""

    mode: str  # timer, cache and clock: "events; cache warm; clock none"
    a: Latency | None  # None: not timed in this mode
    b: Latency | None
    decision: Decision
    settle: str = ""  # the command that would settle it; "" where it is settled, or nothing would
    floor: Floor | None = None  # how far equal builds lie apart there; None: nobody knows
    floor_command: str = ""  # what makes that known; "" where it is, or nothing was compared

    @property
    def verdict(self) -> Verdict:
        """The word for it."""
        return self.decision.verdict

    @property
    def live(self) -> bool:
        """Whether both were timed in one run, in the same alternating rounds."""
        return self.decision.rule == pair.LIVE_PAIR

    @property
    def a_ns(self) -> float | None:
        """A's latency: the median, or the mean of short calls."""
        return _level(self.a)

    @property
    def b_ns(self) -> float | None:
        """B's latency, as A's."""
        return _level(self.b)


def compare_latencies(
    a: Side,
    b: Side,
    differences: Iterable[Difference],
    floors: FloorLookup | None = None,
    same_code: CodeLookup | None = None,
) -> tuple[LatencyComparison, ...]:
    """Every mode in which a side was timed, in B's order; nothing where neither was.

    Of several runs the newest one in which both were timed counts, unless a side was built anew since: then
    the newest of each do. Of two runs of one version each side's own does. `floors` gives the noise floor of
    a place, `same_code` is asked about what moved.
    """
    blocked = [one for one in differences if one.blocks]
    modes = dict.fromkeys(one.mode for one in (*b.latencies, *a.latencies))
    return tuple(_explained(_mode(a, b, mode, blocked, floors), a, b, same_code) for mode in modes)


def noise_command(version: str, workload: str | None) -> str:
    """The command that collects the A/A pairs of a floor."""
    return shlex.join(["profiler", "noise", version, *(["--workloads", workload] if workload else [])])


def _explained(one: LatencyComparison, a: Side, b: Side, same_code: CodeLookup | None) -> LatencyComparison:
    """With the machine code in mind: where it is the same, no version got faster or slower."""
    moved = one.verdict in (Verdict.BETTER, Verdict.WORSE)
    if not moved or same_code is None or one.a is None or one.b is None or not (a.version and b.version):
        return one
    same = same_code((one.a.run_id, a.version), (one.b.run_id, b.version))
    return replace(one, decision=facts.note_same_code(one.decision, same))


def _mode(
    a: Side, b: Side, mode: str, blocked: Sequence[Difference], floors: FloorLookup | None
) -> LatencyComparison:
    apart = a.version == b.version and a.run_id != b.run_id  # each by its own run, else one stands for both
    of_a, of_b = (
        [one for one in side.latencies if one.mode == mode and (not apart or one.run_id == side.run_id)]
        for side in (a, b)
    )
    if not of_a or not of_b:
        lacking = "A" if not of_a else "B"
        decision = Decision(Verdict.MISSING, f"{mode}: not timed in {lacking}", pair.LIVE_PAIR)
        return LatencyComparison(mode, *_first(of_a, of_b), decision, _collect(a, b, _ROUNDS))
    x, y, live = _choose(of_a, of_b)
    if words := [one.words for one in blocked if one.field in (_ALWAYS if live else _BETWEEN_RUNS)]:
        rule = pair.LIVE_PAIR if live else floor.STORED_BASELINE
        return LatencyComparison(mode, x, y, Decision(Verdict.NOT_COMPARABLE, "; ".join(words), rule))
    here = floors(b.gpu or "", mode, float(floor.typical_ns(x.ns))) if floors else None
    lacks = here is None or here.pairs < floor.MIN_FLOOR_PAIRS
    noise = noise_command(b.version, b.workload) if lacks and b.version else ""
    if live and a.version == b.version:
        decision = Decision(Verdict.SAME, "the same samples of one run", pair.LIVE_PAIR, effect=0.0)
        wanted = 0
    elif live:
        decision = pair.judge_live_pair(x, y)
        wanted = decision.rounds_needed or 0
    else:
        decision = floor.judge_stored_baseline(x.ns, y.ns, here)
        wanted = _ROUNDS
    unclear = decision.verdict is Verdict.UNCLEAR and wanted
    settle = _collect(a, b, wanted) or noise if unclear else ""
    return LatencyComparison(mode, x, y, decision, settle, here, noise)


def _choose(of_a: Sequence[Latency], of_b: Sequence[Latency]) -> tuple[Latency, Latency, bool]:
    """The samples to compare, and whether they are of one run's rounds. Both sequences come newest first."""
    runs = {one.run_id: one for one in of_a if one.build == of_a[0].build}
    for y in of_b:
        x = runs.get(y.run_id)
        if x is not None and y.build == of_b[0].build and not set(x.rounds).isdisjoint(y.rounds):
            return x, y, True
    return of_a[0], of_b[0], False


def _first(of_a: Sequence[Latency], of_b: Sequence[Latency]) -> tuple[Latency | None, Latency | None]:
    return (of_a[0] if of_a else None), (of_b[0] if of_b else None)


def _collect(a: Side, b: Side, rounds: int) -> str:
    """The command that times both in alternating rounds; "" for a version against itself."""
    if not a.version or not b.version or a.version == b.version or a.family != b.family:
        return ""
    words = ["profiler", "collect", b.version, "--against", a.version]
    if b.workload:
        words += ["--workloads", b.workload]
    return shlex.join([*words, "--rounds", str(rounds)])


def _level(one: Latency | None) -> float | None:
    return float(floor.typical_ns(one.ns)) if one is not None and len(one.ns) else None
