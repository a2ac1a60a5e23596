"""How much faster each version of a lineage is than its nearest correct ancestor, with the verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from profiler.compare.latency import LatencyComparison, compare_latencies
from profiler.compare.noise_model import NoiseModel
from profiler.evidence.side import Latency, Side
from profiler.history.lineage import Lineage, workload_without_dtype
from profiler.statistics.decision import Interval
from profiler.store.rows import SampleArrays

if TYPE_CHECKING:
    from profiler.store.index import Store
    from profiler.store.rows import LatencyInfo, ResultInfo

_NEWEST_RUNS = 12  # of each version, among which a run that timed both is looked for


class Speedup(NamedTuple):
    """The speedup of a version B over its ancestor A."""

    times: float  # A's latency over B's: 1.33 means a third faster
    interval: tuple[float, float] | None  # of `times`, of the kind that the decision has
    compared: LatencyComparison
    workload: str  # as B's run names it


def load_speedups(
    store: Store, lineage: Lineage, workload: str, gpu: str, noise: NoiseModel
) -> dict[str, Speedup]:
    """The speedup of each version over its nearest correct ancestor, in the mode that the lineage shows.

    Judged by the rounds of the newest run that timed both, else by the noise floor. Versions whose ancestor
    has another dtype, or was not timed on this workload and GPU, are left out.
    """
    family = lineage.family
    timed: dict[str, list[ResultInfo]] = defaultdict(list)
    for row in store.results(family=family, gpu=gpu, kind="latency", latest=False):
        status = lineage.by_id.get(row.version)
        latency = status.latencies.get((workload, gpu)) if status and not status.is_wrong else None
        on_workload = (
            status is not None and workload_without_dtype(row.workload or "", status.version) == workload
        )
        if latency is not None and on_workload and row.mode == latency.mode:
            timed[row.version].append(row)
    pairs: dict[str, tuple[ResultInfo, ResultInfo]] = {}
    for version, rows in timed.items():
        status = lineage.by_id[version]
        ancestor = status.correct_ancestor
        # A version of another dtype does other work.
        if ancestor is None or ancestor.dtype != status.version.dtype or ancestor.id not in timed:
            continue
        pairs[version] = _choose_timings(timed[ancestor.id], rows)
    samples = store.samples(sorted({row.result_id for pair in pairs.values() for row in pair}))
    speedups = {}
    # Every version of a lineage is compared: too many to read bundles for each.
    quick = noise.without_same_code()
    for version, (a, b) in pairs.items():
        if a.result_id in samples and b.result_id in samples:
            sides = _side(a, samples[a.result_id]), _side(b, samples[b.result_id])
            speedup = _speedup(*sides, b.workload or "", quick)
            if speedup is not None:
                speedups[version] = speedup
    return speedups


def shared_run_speedup(
    of_a: Sequence[LatencyInfo], of_b: Sequence[LatencyInfo], noise: NoiseModel
) -> Speedup | None:
    """The speedup of B over A by the newest run that timed both; None where none of these runs did.

    Timings of one workload, GPU and mode, oldest first.
    """
    runs_of_a = {row.run_id: row for row in of_a}
    b = next((row for row in reversed(of_b) if row.run_id in runs_of_a), None)
    if b is None:
        return None
    a = runs_of_a[b.run_id]
    return _speedup(_side(a, a.samples), _side(b, b.samples), b.workload or "", noise)


def _speedup(a: Side, b: Side, workload: str, noise: NoiseModel) -> Speedup | None:
    (comparison,) = compare_latencies(a, b, (), noise)
    if not (comparison.a_ns and comparison.b_ns):
        return None
    effect, interval = comparison.decision.effect, comparison.decision.interval
    times = comparison.a_ns / comparison.b_ns if effect is None else 1 / (1 + effect)
    return Speedup(times, _inverse(interval), comparison, workload)


def _choose_timings(of_a: list[ResultInfo], of_b: list[ResultInfo]) -> tuple[ResultInfo, ResultInfo]:
    """The timings of both in the newest run that has both, else the newest of each."""
    # A run that timed both is judged by its rounds, which tells smaller changes than a noise floor.
    newest_a, newest_b = (sorted(rows, key=_age, reverse=True)[:_NEWEST_RUNS] for rows in (of_a, of_b))
    runs = {row.run_id: row for row in newest_a}
    shared_run_row = next((row for row in newest_b if row.run_id in runs), None)
    return (runs[shared_run_row.run_id], shared_run_row) if shared_run_row else (newest_a[0], newest_b[0])


def _age(row: ResultInfo) -> tuple[object, str]:
    return row.created, row.run_id


def _side(row: ResultInfo | LatencyInfo, samples: SampleArrays) -> Side:
    timed = Latency(
        row.run_id,
        row.mode,
        samples.ns,
        samples.rounds,
        samples.clocks_mhz,
        samples.throttled,
        row.created,
        processes=samples.processes,
    )
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
