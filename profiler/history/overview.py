"""The newest measured state of every family: its newest version by workload and GPU, and what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from profiler.compare.clock_drift import HEADLINE
from profiler.compare.comparability import Difference
from profiler.compare.comparison import Comparison
from profiler.compare.judged import Judge
from profiler.compare.kernel_pairs import NO_PAIRS, Pairing
from profiler.compare.latency import LatencyComparison, compare_latencies
from profiler.compare.match_launches import PairedBy, launch_labels
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.compare.pair_comparison import MetricChange, PairComparison
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Side
from profiler.evidence.values import NOT_COLLECTED, Evidence, State, Value
from profiler.history.baselines import newest_and_before
from profiler.statistics.verdict import Verdict

if TYPE_CHECKING:
    from profiler.store.index import Store

SHOWN = ("tensor_busy", "shared_conflicts", "shared_excess", "occupancy")  # the concepts beside the duration
LOOK_BACK = 12  # versions to search for the newest and the one before, on each workload and GPU
_RESULT_KINDS = ("launch", "facts", "latency")
_MAX_CELLS = 40
_MAX_ROWS = 8


@dataclass(frozen=True)
class OverviewRow:
    """One launch of the newest version."""

    part: str  # range/kernel#n
    base_name: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    duration: Value
    shown: Mapping[str, Value]  # by concept, those of SHOWN that metrics.txt has
    change: MetricChange | None  # of the duration since the version before; None where nothing pairs
    reason: str  # of the verdict, or why there is none
    better: int  # how many counters are better, without the duration
    worse: int
    missing: int  # judged counters that lack a number on a side which could have one
    name_before: str = ""  # of the kernel in the version before, where a pair has two names
    paired_by: PairedBy = PairedBy.NAME

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the duration. None for a new launch, unless it has no duration."""
        if self.change:
            return self.change.verdict
        return Verdict.MISSING if self.duration.number is None else None


@dataclass(frozen=True)
class OverviewCell:
    """The newest version of a family on one workload and GPU."""

    family: str
    workload: str | None
    gpu: str | None
    evidence: Evidence
    version: str
    run_id: str | None
    created: datetime | None
    before: str | None  # the version before; None: this is the first
    comparable: bool  # to the version before; True where there is none
    differences: tuple[Difference, ...]
    rows: tuple[OverviewRow, ...]  # longest first
    hidden_rows: int
    gone: tuple[str, ...]  # labels of launches that only the version before had
    tally: Mapping[Verdict, int]  # counts of the verdicts on latencies and durations, hidden rows included
    calls: tuple[LatencyComparison, ...] = ()  # one a mode; the first version is compared with itself
    verdict: Verdict | None = None  # on the newest version, as a comparison gives it; None for the first


@dataclass(frozen=True)
class Overview:
    """The cells of all families."""

    cells: tuple[OverviewCell, ...]
    hidden_cells: int  # how many more there are than the limit


def load_overview(
    store: Store,
    table: MetricTable,
    *,
    cells: int = _MAX_CELLS,
    rows: int = _MAX_ROWS,
    noise: NoiseModel = UNKNOWN_NOISE,
    pairing: Pairing = NO_PAIRS,
    families: Sequence[str] | None = None,
) -> Overview:
    """The newest state of these families in their order; of all, the one with the newest run first.

    There are at most `cells` cells, each with its `rows` longest launches.
    """
    overview_cells: list[OverviewCell] = []
    # Up to `cells` comparisons are made, too many to read bundles for each.
    judge = Judge(table, noise.without_same_code(), pairing)
    hidden = 0
    for family in _newest_first(store) if families is None else families:
        for (workload, gpu, evidence), versions in _newest_versions(store, family).items():
            if len(overview_cells) == cells:
                hidden += 1
                continue
            sides = [
                store.side(
                    family=family,
                    version=version,
                    workload=workload or "",
                    gpu=gpu or "",
                    evidence=evidence,
                    label=f"{family}/{version}",
                )
                for version in versions
            ]
            overview_cells.append(_cell(family, versions, sides, evidence, judge, rows))
    return Overview(tuple(overview_cells), hidden)


def _newest_first(store: Store) -> list[str]:
    """The families, sorted by the time of their newest run, newest first."""
    last_created: dict[str, datetime] = {}
    for info in store.versions():
        last_created[info.family] = max(last_created.get(info.family, info.last_created), info.last_created)
    return sorted(last_created, key=lambda family: last_created[family], reverse=True)


def _newest_versions(store: Store, family: str) -> dict[tuple[str | None, str | None, Evidence], list[str]]:
    """The newest version and the one before, for every workload, GPU and evidence of a family."""
    # A family may have hundreds of versions, of which the overview shows the newest.
    versions = [info.version for info in store.versions(family)][-LOOK_BACK:]
    present: dict[tuple[str | None, str | None, Evidence], list[str]] = {}
    for version in reversed(versions):
        rows = store.results(family=family, version=version, evidence=Evidence.MEASURED)
        for cell in dict.fromkeys(
            (row.workload, row.gpu, row.evidence) for row in rows if row.kind in _RESULT_KINDS
        ):
            present.setdefault(cell, []).append(version)
    return {
        cell: [version for version in newest_and_before(versions, names) if version is not None]
        for cell, names in present.items()
    }


def _duration(launch: Launch, side: Side, table: MetricTable) -> Value:
    """The duration of a launch under the profiler, or the state that says why there is none."""
    return _values(launch, (HEADLINE,), table, chip_of(side.compute_capability)).get(HEADLINE, NOT_COLLECTED)


def _cell(
    family: str,
    versions: Sequence[str],
    sides: Sequence[Side],
    evidence: Evidence,
    judge: Judge,
    limit: int,
) -> OverviewCell:
    newest = sides[0]
    # Durations of all launches count in the tally, but counters are judged for the rows alone.
    comparison = judge.of_time().sides(sides[1], newest) if len(sides) > 1 else None
    rows, hidden_rows = _rows(newest, comparison, judge, limit)
    changes = [pair.headline for pair in comparison.pairs] if comparison else []
    paired = {id(launch) for pair in comparison.pairs for launch in pair.launches[1]} if comparison else set()
    unpaired = (launch for launch in newest.launches if id(launch) not in paired)
    without_duration = [
        Verdict.MISSING for launch in unpaired if _duration(launch, newest, judge.table).number is None
    ]
    calls = comparison.latency if comparison else compare_latencies(newest, newest, ())
    verdicts = [call.verdict for call in calls] if comparison else []
    verdicts += [change.verdict for change in changes if change]
    return OverviewCell(
        family,
        newest.workload,
        newest.gpu,
        evidence,
        versions[0],
        newest.run_id,
        newest.session.created,
        versions[1] if comparison else None,
        comparison.comparable if comparison else True,
        comparison.differences if comparison else (),
        tuple(rows),
        hidden_rows,
        tuple(comparison.label(launch) for launch in comparison.only_in_a) if comparison else (),
        Counter((*verdicts, *without_duration)),
        calls,
        comparison.verdict if comparison else None,
    )


def _rows(
    side: Side, comparison: Comparison | None, judge: Judge, limit: int
) -> tuple[list[OverviewRow], int]:
    """The longest launches, each with the counters of its pair, and how many are left out."""
    pairs = {id(pair.b): pair for pair in comparison.pairs} if comparison else {}
    # Launches that are samples of a pair stand in its row.
    in_rows = {id(other) for pair in pairs.values() for other in pair.launches[1]} - pairs.keys()
    why_ambiguous = (
        {id(launch): group.why for group in comparison.ambiguous for launch in group.b} if comparison else {}
    )
    chip = chip_of(side.compute_capability)
    launches = [
        (launch, part, _duration(launch, side, judge.table))
        for launch, part in zip(side.launches, launch_labels(side.launches), strict=True)
        if id(launch) not in in_rows
    ]
    overview_rows = []
    for launch, part, duration in sorted(launches, key=lambda entry: _longest_first(entry[2]))[:limit]:
        why = "the first version" if comparison is None else "new in this version"
        why = f"ambiguous: {why_ambiguous[id(launch)]}" if id(launch) in why_ambiguous else why
        pair = pairs.get(id(launch))
        if pair and comparison:
            pair = judge.every_metric(comparison, pair)
        values = _values(launch, SHOWN, judge.table, chip)
        overview_rows.append(_row(launch, part, duration, values, pair, why))
    return overview_rows, len(launches) - len(overview_rows)


def _values(
    launch: Launch, concepts: Sequence[str], table: MetricTable, chip: str | None
) -> dict[str, Value]:
    """The launch's values of those concepts that metrics.txt declares."""
    metrics = {concept: table.by_concept[concept] for concept in concepts if concept in table.by_concept}
    return {concept: table.resolve(metric, launch.values, chip)[1] for concept, metric in metrics.items()}


def _row(
    launch: Launch,
    part: str,
    duration: Value,
    shown: Mapping[str, Value],
    pair: PairComparison | None,
    why: str,
) -> OverviewRow:
    change = pair.headline if pair else None
    counters = [counter for counter in pair.metrics if counter is not change] if pair else []
    return OverviewRow(
        part,
        launch.base_name,
        launch.grid,
        launch.block,
        duration,
        shown,
        change,
        change.reason if change else why,
        sum(counter.verdict is Verdict.BETTER for counter in counters),
        sum(counter.verdict is Verdict.WORSE for counter in counters),
        sum(_is_missing(counter) for counter in counters if counter.judged),
        pair.a.base_name if pair and pair.paired_by.words else "",
        pair.paired_by if pair else PairedBy.NAME,
    )


def _is_missing(change: MetricChange) -> bool:
    # A metric that the chip does not have is not missing.
    states = (change.a.state, change.b.state)
    return change.verdict is Verdict.MISSING and State.NOT_AVAILABLE not in states


def _longest_first(duration: Value) -> float:
    """A sort key: launches without a duration come first, so that the limit does not hide them."""
    return float("-inf") if duration.number is None else -float(duration.number)
