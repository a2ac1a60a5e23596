"""How much faster each version of a lineage is than the one it is held against, with the verdict on it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from profiler.compare import LatencyComparison, NoiseModel, compare_latencies
from profiler.evidence import Latency, Side
from profiler.history.lineage import Lineage, workload_without_dtype
from profiler.statistics import Interval
from profiler.store import SampleArrays

if TYPE_CHECKING:
    from profiler.store import ResultInfo, Store

_RUNS = 12  # newest timings of a version among which a common run is looked for


class Speedup(NamedTuple):
    """A's latency over B's: 1.33 is a third faster."""

    times: float
    interval: tuple[float, float] | None  # of `times`, of the decision's kind
    compared: LatencyComparison
    workload: str  # as B's run calls it


def load_speedups(
    store: Store, lineage: Lineage, workload: str, gpu: str, noise: NoiseModel
) -> dict[str, Speedup]:
    """By version: against its nearest correct ancestor, in the mode that the lineage is shown in.

    By the rounds of the newest run that timed both, else by the floor. Only of versions of one dtype.
    """
    family = lineage.family
    timed: dict[str, list[ResultInfo]] = defaultdict(list)
    for row in store.results(family=family, gpu=gpu, kind="latency", latest=False):
        standing = lineage.by_id.get(row.version)
        own = standing.latencies.get((workload, gpu)) if standing and not standing.is_wrong else None
        here = (
            standing is not None and workload_without_dtype(row.workload or "", standing.version) == workload
        )
        if own is not None and here and row.mode == own.mode:
            timed[row.version].append(row)
    pairs: dict[str, tuple[ResultInfo, ResultInfo]] = {}
    for version, rows in timed.items():
        standing = lineage.by_id[version]
        against = standing.correct_ancestor
        if against is None or against.dtype != standing.version.dtype or against.id not in timed:
            continue
        pairs[version] = _chosen(timed[against.id], rows)
    held = store.samples(sorted({row.result_id for pair in pairs.values() for row in pair}))
    found = {}
    for version, (a, b) in pairs.items():
        if a.result_id in held and b.result_id in held:
            sides = _side(a, held[a.result_id]), _side(b, held[b.result_id])
            # Every version of a lineage is compared: no bundles are read for them.
            (compared,) = compare_latencies(*sides, (), noise.without_same_code())
            if compared.a_ns and compared.b_ns:
                effect, interval = compared.decision.effect, compared.decision.interval
                times = compared.a_ns / compared.b_ns if effect is None else 1 / (1 + effect)
                found[version] = Speedup(times, _inverse(interval), compared, b.workload or "")
    return found


def _chosen(of_a: list[ResultInfo], of_b: list[ResultInfo]) -> tuple[ResultInfo, ResultInfo]:
    """Of the newest run with both, else the newest of each."""
    newest_a, newest_b = (sorted(rows, key=_age, reverse=True)[:_RUNS] for rows in (of_a, of_b))
    runs = {row.run_id: row for row in newest_a}
    both = next((row for row in newest_b if row.run_id in runs), None)
    return (runs[both.run_id], both) if both else (newest_a[0], newest_b[0])


def _age(row: ResultInfo) -> tuple[object, str]:
    return row.created, row.run_id


def _side(row: ResultInfo, held: SampleArrays) -> Side:
    timed = Latency(row.run_id, row.mode, held.ns, held.rounds, held.clocks_mhz, held.throttled, row.created)
    return Side(
        f"{row.family}/{row.version}",
        (),
        row.gpu,
        workload=row.workload,
        family=row.family,
        version=row.version,
        run_id=row.run_id,
        latencies=(timed,),
    )


def _inverse(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (1 / (1 + interval.high), 1 / (1 + interval.low))
