"""Compares many names with one of them, by the rules for two sides, and judges all as one table."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.compare.comparison import Comparison
from profiler.compare.judged import Judge, judge_comparisons_together
from profiler.compare.kernel_pairs import KernelPair
from profiler.compare.latency import LatencyComparison
from profiler.compare.match_launches import kernel_filter
from profiler.compare.pair_comparison import MetricChange
from profiler.compare.resolve_names import (
    RESULT_KINDS,
    VersionRef,
    find_run,
    is_file_name,
    resolve_all,
    resolve_version,
)
from profiler.documents.comparison_text import tally
from profiler.documents.version_table import (
    LATENCY,
    MODELLED_TIME,
    NOT_TIMED,
    PRESENT,
    TableCell,
    TableColumn,
    TableRow,
    VersionTableDocument,
)
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence import formatting
from profiler.evidence.cell import Cell
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import Metric, MetricTable
from profiler.evidence.naming import brief_list, natural_key
from profiler.evidence.side import Side
from profiler.evidence.values import NCU_DURATION, Evidence, State, Value
from profiler.history.lineage import (
    BASELINE,
    GOOD,
    MAIN,
    WRONG,
    Lineage,
    VersionStatus,
    load_lineage,
    workload_without_dtype,
)
from profiler.history.version_latency import mode_rank
from profiler.history.without_results import find_version_without_results
from profiler.model.error_table import load_errors
from profiler.model.stored_predictions import (
    StoredPrediction,
    StoredPredictions,
    find_predictions,
    predicted_ratio,
)
from profiler.statistics.decision import Interval
from profiler.statistics.noise_floor import typical_ns
from profiler.statistics.verdict import Verdict

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener
    from profiler.store.index import Store

MOST_VERSIONS = 200  # in one table: a run or a list that is longer is a mistake of the one who asks
# What stands beside the time unless other metrics are named: those of which any version has a number.
SHOWN = (
    "tensor_busy",
    "dram_busy",
    "shared_conflicts",
    "occupancy",
    "registers",
    "static_registers",
    "static_spills",
    "static_shared",
    "static_occupancy",
    "static_instructions",
    "static_hmma",
    "modelled_conflicts",
    "modelled_wavefronts",
)
_DURATION = "duration"


@dataclass(frozen=True)
class _Subject:
    """One thing to compare: a version, a version as one run has it, or a report."""

    name: str
    version: VersionRef | None = None  # None: a report
    status: VersionStatus | None = None
    workloads: Mapping[Cell, str] = field(default_factory=dict)  # by cell, as its run names them
    report: Side | None = None
    predicted: Mapping[Cell, StoredPrediction] = field(default_factory=dict)

    def side(self, cell: Cell, store_opener: StoreOpener) -> Side | None:
        """What it has in a cell; None where it has nothing."""
        if cell not in self.workloads:
            return None
        if self.report is not None or self.version is None:
            return self.report and self.report.on_gpu(cell.gpu or None)
        return store_opener().side(
            run_id=self.version.run_id,
            family=self.version.family,
            version=self.version.version,
            workload=self.workloads[cell],
            gpu=cell.gpu,
            evidence=cell.evidence,
            label=self.name,
        )


def compare_many(
    names: Sequence[str],
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    against: str | None = None,
    metrics: Sequence[str] = (),
    workload: str | None = None,
    gpu: str | None = None,
    evidence: Collection[Evidence] = (),
    kernel: str | None = None,
    across: Collection[str] = (),
    pairs: Sequence[KernelPair] = (),
    guess: bool = True,
    places: Collection[Cell] | None = None,
    data: str | None = None,
    lineages: Mapping[str, Lineage | None] | None = None,
) -> VersionTableDocument:
    """Hold versions, runs or reports against one of them: time of each workload, counters and facts.

    `against` is the baseline, the first name where None; it is a row where `names` lack it. A run stands for
    all its versions. Times come first; counters are of the launch whose time moved most, among those that
    `kernel` matches. `places` are those of `table_places` to show, all where None. `metrics` are concepts,
    SHOWN where none is named. `lineages` are those at hand, which then are not loaded again.

    Raises UnknownName, UnreadableReport, and CannotJudge where nothing is shared.
    """
    concepts = _check_metrics(table, metrics)
    subjects = _Subjects(store_opener, data, dict(lineages or {}))
    rows = [subject for name in names for subject in subjects.of_name(name)]
    rows = list({subject.name: subject for subject in rows}.values())
    baseline = subjects.only_one(against) if against is not None else rows[0] if rows else None
    if baseline is None:
        raise UnknownName("nothing to compare: name versions, runs or reports")
    if same := next((subject for subject in rows if subject.name == baseline.name), None):
        baseline = same
    else:
        rows.insert(0, baseline)
    if len(rows) < 2:
        raise CannotJudge(f"{baseline.name} only: name another version to compare it with")
    if "gpu" in across:
        raise UnknownName(
            "across gpu: only two names can be compared across GPUs; a table has one place per GPU"
        )
    if len(rows) > MOST_VERSIONS:
        raise UnknownName(f"{len(rows)} versions in one table: at most {MOST_VERSIONS}, name fewer")
    cells = [
        cell
        for cell in subjects.choose_cells(rows, workload, gpu, evidence)
        if places is None or cell in places
    ]
    if not cells:
        asked = ", ".join(filter(None, (*evidence, workload, gpu)))
        raise CannotJudge(
            f"none of {brief_list([row.name for row in rows])} has results{asked and f' of {asked}'}"
        )
    knowing = Judge.of_data(table, store_opener, data, pairs=pairs, guess=guess, across=across)
    quick = replace(knowing, noise=knowing.noise.without_same_code())
    judge = _TableJudge(quick, kernel)
    compared = [
        _TableCell(cell, baseline, rows, judge, store_opener, concepts)
        for cell in cells
        if not cell.is_modelled_time
    ]
    _judge_together(compared, concepts)
    timed = [_ModelledTime(cell, baseline, rows) for cell in cells if cell.is_modelled_time]
    shown: list[_TableCell | _ModelledTime] = [*compared, *timed]
    shown.sort(key=lambda place: cells.index(place.cell))
    notes = subjects.prediction_notes if timed else ()
    return _document(shown, rows, baseline, table, metrics, notes)


def table_places(
    names: Sequence[str],
    store_opener: StoreOpener,
    *,
    data: str | None = None,
    lineages: Mapping[str, Lineage | None] | None = None,
) -> dict[Cell, int]:
    """Where any of the names has results, and how many of them: measured first, then modelled times.

    Facts of the newest architecture come first, and of workloads that the CPU ran those of most versions.
    The arguments are as for `compare_many`, which takes some of these places.
    """
    subjects = _Subjects(store_opener, data, dict(lineages or {}))
    found = {subject.name: subject for name in names for subject in subjects.of_name(name)}
    return {
        place: sum(place in subject.workloads for subject in found.values())
        for place in subjects.choose_cells(found.values())
    }


def main_places(places: Mapping[Cell, int]) -> list[Cell]:
    """Every measured place, and of static and of modelled facts the one that most of the names have.

    Of static facts that of the newest architecture, which has the highest number. Modelled times are of one
    GPU, and left out where anything was measured.
    """
    chosen = [place for place in places if place.evidence is Evidence.MEASURED]
    modelled_times = [place for place in places if place.is_modelled_time]
    if modelled_times and not chosen:
        chosen = [place for place in modelled_times if place.gpu == modelled_times[0].gpu]
    for kind in (Evidence.STATIC, Evidence.MODELLED):
        of_kind = [place for place in places if place.evidence is kind and not place.is_modelled_time]
        gpus = sorted({place.gpu for place in of_kind}, key=natural_key)
        newest = [place for place in of_kind if place.gpu == gpus[-1]] if gpus else []
        chosen += sorted(newest, key=lambda place: -places[place])[:1]
    return chosen


def table_names(
    names: Sequence[str],
    store_opener: StoreOpener,
    *,
    data: str | None = None,
    lineages: Mapping[str, Lineage | None] | None = None,
) -> list[str]:
    """The names of the rows that `compare_many` makes of these: of a run one a version."""
    subjects = _Subjects(store_opener, data, dict(lineages or {}))
    return list(dict.fromkeys(subject.name for name in names for subject in subjects.of_name(name)))


def _check_metrics(table: MetricTable, metrics: Sequence[str]) -> list[str]:
    """The concepts to show, in the order asked for; UnknownName for one that metrics.txt lacks."""
    for concept in metrics:
        if concept not in (LATENCY, MODELLED_TIME) and concept not in table.by_concept:
            near = get_close_matches(concept, table.by_concept, n=3)
            hint = f"; near: {brief_list(near)}" if near else ": `profiler list metrics` lists them"
            raise UnknownName(f"no concept {concept!r} in {table.path}{hint}", option="--metrics")
    chosen = metrics or [concept for concept in SHOWN if concept in table.by_concept]
    times = (LATENCY, MODELLED_TIME, _DURATION)
    return [concept for concept in dict.fromkeys(chosen) if concept not in times]


@dataclass
class _Subjects:
    """Turns names into what is compared."""

    store_opener: StoreOpener
    data: str | None
    lineages: dict[str, Lineage | None]
    predictions: dict[str, StoredPredictions | None] = field(default_factory=dict)

    @property
    def prediction_notes(self) -> tuple[str, ...]:
        """What the ranges of the modelled times are, a sentence for each family that has some."""
        return tuple(dict.fromkeys(stored.note for stored in self.predictions.values() if stored is not None))

    def only_one(self, name: str) -> _Subject:
        """The one thing that a name stands for; UnknownName for a run of several versions."""
        if is_file_name(name):
            return self._report(name)
        store = self.store_opener()
        try:
            return self._of_version(store, resolve_version(store, name))
        except UnknownName:
            if planned := self._without_results(store, name):
                return planned
            raise

    def of_name(self, name: str) -> list[_Subject]:
        """What a name stands for: of a run all its versions."""
        if not name.strip() or is_file_name(name):
            return [self.only_one(name)]
        store = self.store_opener()
        run = find_run(store, name)
        if run is None or isinstance(run, VersionRef):
            return [self.only_one(name)]
        versions = dict.fromkeys(
            (row.family, row.version)
            for row in store.results(run_id=run.run_id)
            if row.kind in (*RESULT_KINDS, "cell")
        )
        if not versions:
            raise UnknownName(f"run {name} holds no results")
        return [self._of_version(store, VersionRef(*version, run.run_id)) for version in versions]

    def _report(self, name: str) -> _Subject:
        (side,) = resolve_all([name], self.store_opener)
        places = [Cell(gpu=gpu) for gpu in side.gpus or ("",)]
        return _Subject(name, workloads=dict.fromkeys(places, ""), report=side)

    def _without_results(self, store: Store, name: str) -> _Subject | None:
        """A version that the catalogue has and no run does, so that a planned one stands in its row."""
        entry = find_version_without_results(location.open_root(self.data), store, name)
        if entry is None:
            return None
        family, version = entry
        lineage = self._lineage(store, family)
        status = lineage.by_id.get(version.id) if lineage else None
        return _Subject(f"{family}/{version.id}", VersionRef(family, version.id), status)

    def _of_version(self, store: Store, version: VersionRef) -> _Subject:
        lineage = self._lineage(store, version.family)
        status = lineage.by_id.get(version.version) if lineage else None
        if version.run_id is None:
            places = [cell.place for cell in store.cells(version.family) if cell.version == version.version]
        else:
            results = store.results(
                run_id=version.run_id, family=version.family, version=version.version, latest=False
            )
            places = [
                (row.workload or "", row.gpu or "", row.evidence)
                for row in results
                if row.kind in RESULT_KINDS
            ]
        workloads = {
            Cell(
                "",
                "",
                workload_without_dtype(workload, status.version) if status else workload,
                gpu,
                evidence,
            ): workload
            for workload, gpu, evidence in places
        }
        predicted = self._predicted(store, version, status) if version.run_id is None else {}
        workloads |= {place: prediction.workload for place, prediction in predicted.items()}
        return _Subject(version.name, version, status, workloads, predicted=predicted)

    def _predicted(
        self, store: Store, version: VersionRef, status: VersionStatus | None
    ) -> dict[Cell, StoredPrediction]:
        """The version's modelled times in the family's newest run that keeps some."""
        family = version.family
        if family not in self.predictions:
            self.predictions[family] = find_predictions(location.open_root(self.data), store, family)
        stored = self.predictions[family]
        found = {}
        for prediction in stored.predictions if stored else ():
            if prediction.version == version.version:
                shape = prediction.workload
                shape = workload_without_dtype(shape, status.version) if status else shape
                found[Cell("", "", shape, prediction.gpu, Evidence.MODELLED)] = prediction
        return found

    def choose_cells(
        self,
        subjects: Iterable[_Subject],
        workload: str | None = None,
        gpu: str | None = None,
        evidence: Collection[Evidence] = (),
    ) -> list[Cell]:
        """The cells that were asked for and that any subject has, as `table_places` orders them."""
        cells = {
            cell
            for subject in subjects
            for cell, whole in subject.workloads.items()
            if (workload is None or workload in (cell.workload, whole))
            and gpu in (None, cell.gpu)
            and (not evidence or cell.evidence in evidence)
        }
        modelled = [
            name for lineage in self.lineages.values() if lineage for name in lineage.modelled_workloads
        ]
        rank = {name: nth for nth, name in enumerate(dict.fromkeys(modelled))}
        natural = sorted(cells, key=lambda cell: (natural_key(cell.gpu), natural_key(cell.workload)))
        architectures = sorted(
            {cell.gpu for cell in cells if cell.evidence is Evidence.STATIC}, key=natural_key
        )

        def order(cell: Cell) -> tuple[int, int]:
            if cell.evidence is Evidence.MEASURED:
                return 0, 0
            if cell.is_modelled_time:
                return 1, self._place_of_gpu(cell.gpu)
            if cell.evidence is Evidence.STATIC:
                return 2, -architectures.index(cell.gpu)
            return 3, rank.get(cell.workload, len(rank))

        return sorted(natural, key=order)

    def _place_of_gpu(self, gpu: str) -> int:
        """Its place among the GPUs of the predictions, which begin with the one most workloads are of."""
        gpus = [name for stored in self.predictions.values() if stored for name in stored.gpus]
        return gpus.index(gpu) if gpu in gpus else len(gpus)

    def _lineage(self, store: Store, family: str) -> Lineage | None:
        if family not in self.lineages:
            self.lineages[family] = load_lineage(location.open_root(self.data), store, family)
        return self.lineages[family]


@dataclass(frozen=True)
class _TableJudge:
    """Judges every cell of one table."""

    judge: Judge
    kernel: str | None  # a pattern of the launches of which one stands in the table

    @property
    def table(self) -> MetricTable:
        """The metrics that are judged."""
        return self.judge.table

    def whole(self, a: Side, b: Side) -> Comparison:
        """B against A: of measured launches the durations alone."""
        of_time = a.evidence is Evidence.MEASURED
        return (self.judge.of_time() if of_time else self.judge).sides(a, b)

    def of_launch(self, comparison: Comparison, launch: Launch | None) -> Comparison:
        """The comparison with the pair of one launch of A alone, every metric of it judged."""
        pairs = [pair for pair in comparison.pairs if pair.holds(launch)]
        if comparison.a.evidence is Evidence.MEASURED:
            pairs = [self.judge.every_metric(comparison, pair) for pair in pairs]
        return replace(comparison, pairs=tuple(pairs))

    def launch_of_table(self, base: Side, comparisons: Sequence[Comparison]) -> Launch | None:
        """The launch of the baseline whose time moved most, by any of these; where none did, the longest.

        A launch that got slower counts with the time that it takes now.
        """
        if base.evidence is not Evidence.MEASURED:
            return self.main_launch(base)
        fits = kernel_filter(self.kernel)
        moved = [
            pair
            for comparison in comparisons
            for pair in comparison.pairs
            if pair.verdict.traits.moved and fits(pair.a)
        ]
        if moved:
            return max(moved, key=lambda pair: abs(_duration(pair.b) - _duration(pair.a))).a
        longest = {id(launch): _duration(launch) for launch in base.launches}
        for comparison in comparisons:
            for pair in comparison.pairs:
                longest[id(pair.a)] = max(longest.get(id(pair.a), 0.0), _duration(pair.b))
        return max(filter(fits, base.launches), key=lambda launch: longest[id(launch)], default=None)

    def main_launch(self, side: Side) -> Launch | None:
        """The launch whose counters stand for a side: its longest, of facts those of the main function."""
        launches = list(filter(kernel_filter(self.kernel), side.launches))
        if not launches:
            return None
        if side.evidence is not Evidence.MEASURED:
            return next((launch for launch in launches if launch.base_name == MAIN), launches[0])
        return max(launches, key=_duration)


class _TableCell:
    """One workload, GPU and kind of evidence: what each subject has there, beside what the baseline has."""

    def __init__(
        self,
        cell: Cell,
        baseline: _Subject,
        subjects: Sequence[_Subject],
        judge: _TableJudge,
        store_opener: StoreOpener,
        concepts: Sequence[str],
    ) -> None:
        self.cell, self.baseline, self.judge = cell, baseline, judge
        self.sides = {subject.name: subject.side(cell, store_opener) for subject in subjects}
        base = self.sides[baseline.name]
        whole = {
            subject.name: judge.whole(base, side)
            for subject in subjects
            if base is not None and subject is not baseline and (side := self.sides[subject.name]) is not None
        }
        self.whole = whole
        self.launch = judge.launch_of_table(base, list(whole.values())) if base else None
        self.comparisons = {
            name: judge.of_launch(comparison, self.launch) for name, comparison in whole.items()
        }
        # Kernels of others are no part of the table that is judged together.
        self.judged = [subject.name for subject in subjects if not _is_of_others(subject, baseline)]
        self.metrics = [
            metric
            for concept in concepts
            if (metric := judge.table.by_concept[concept]).evidence is cell.evidence
        ]
        modes = {
            latency.mode for side in self.sides.values() if side is not None for latency in side.latencies
        }
        self.mode = min(modes, key=mode_rank) if modes else ""

    def columns(self, asked: bool) -> list[tuple[TableColumn, Metric | None]]:
        """The time first, then each metric; without `asked` only those that anybody has a number of."""
        cell = self.cell
        kernel = self.launch.base_name if self.launch and cell.evidence is Evidence.MEASURED else ""
        columns: list[tuple[TableColumn, Metric | None]] = []
        if self.mode:
            time = TableColumn(
                cell.workload, cell.gpu, cell.evidence, LATENCY, LATENCY, "ns", "lower", True, self.mode
            )
            columns.append((time, None))
        elif cell.evidence is Evidence.MEASURED and _DURATION in self.judge.table.by_concept:
            metric = self.judge.table.by_concept[_DURATION]
            columns.append((self._column(metric, kernel, is_time=True), metric))
        shown = [metric for metric in self.metrics if asked or self._has_number(metric)]
        if not asked:
            shown += self._failing_facts()
        return [*columns, *((self._column(metric, kernel), metric) for metric in shown)]

    def _failing_facts(self) -> list[Metric]:
        """The facts beside the chosen ones that a gate fails by: by these a version is worse, too."""
        chosen = {metric.concept for metric in self.metrics}
        worse = {
            change.concept
            for comparison in self.comparisons.values()
            for pair in comparison.pairs
            for change in pair.metrics
            if pair.facts is not None and change.verdict is Verdict.WORSE
        }
        return [metric for metric in self.judge.table.metrics if metric.concept in worse - chosen]

    def _failures_without_column(self) -> list[str]:
        """What a gate fails by and no column shows: of another kernel, or over the budget."""
        return [
            f"{name} is worse on {self.cell.workload} {self.cell.gpu}, kernel {pair.kernel}: {failure.words}"
            for name, whole in self.whole.items()
            for pair in whole.pairs
            for failure in (pair.facts.failures if pair.facts else ())
            if not pair.holds(self.launch) or failure in pair.failures_without_metric
        ]

    def _column(self, metric: Metric, kernel: str, *, is_time: bool = False) -> TableColumn:
        place = (self.cell.workload, self.cell.gpu, self.cell.evidence)
        return TableColumn(
            *place, metric.concept, metric.label, metric.unit, metric.better, is_time=is_time, kernel=kernel
        )

    def _has_number(self, metric: Metric) -> bool:
        return any(
            self._own_value(side, metric).number is not None
            for side in self.sides.values()
            if side is not None
        )

    def _own_value(self, side: Side, metric: Metric) -> Value:
        """A side's value without a partner: of the baseline, that of the launch which the table is about."""
        is_base = side is self.sides[self.baseline.name]
        launch = self.launch if is_base and self.launch else self.judge.main_launch(side)
        if launch is None:
            return Value(None, metric.unit, state=State.NOT_COLLECTED)
        return self.judge.table.resolve(metric, launch.values, chip_of(side.capability_of(launch)))[1]

    def cell_of(self, subject: _Subject, metric: Metric | None) -> TableCell:
        """What a subject has of a metric; None: of timed calls."""
        side = self.sides[subject.name]
        if side is None:
            if _why_wrong(subject, side) and self.cell.evidence is not Evidence.STATIC:
                return TableCell(None, WRONG, reason=_why_wrong(subject, side))
            return TableCell(None, NOT_TIMED[self.cell.evidence], verdict=_missing(subject, self.baseline))
        if self.cell.evidence is Evidence.MEASURED and (why := _why_wrong(subject, side)):
            return TableCell(None, WRONG, reason=why, run_id=side.run_id)
        made = self._latency(subject, side) if metric is None else self._counter(subject, side, metric)
        return replace(made, verdict=None) if _is_of_others(subject, self.baseline) else made

    def _latency(self, subject: _Subject, side: Side) -> TableCell:
        comparison = self.comparisons.get(subject.name)
        own = next((latency for latency in side.latencies if latency.mode == self.mode), None)
        judged = self._judged_latency(comparison)
        number = judged.b_ns if judged is not None else float(typical_ns(own.ns)) if own is not None else None
        if number is None:
            reason, command = (judged.decision.reason, judged.settle) if judged else ("", "")
            return TableCell(
                None,
                "not timed",
                None,
                verdict=_missing(subject, self.baseline),
                reason=reason,
                command=command,
            )
        value, run_id = Value(number, "ns"), own.run_id if own else side.run_id
        if judged is None or judged.a_ns is None:
            is_baseline = subject is self.baseline
            reason = "" if is_baseline else f"{self.baseline.name} is not timed there"
            return TableCell(value, verdict=_missing(subject, self.baseline), reason=reason, run_id=run_id)
        decision = judged.decision
        effect = decision.effect if decision.effect is not None else number / judged.a_ns - 1
        return TableCell(
            value,
            PRESENT,
            Value(judged.a_ns, "ns"),
            100 * effect,
            judged.verdict,
            decision.interval,
            decision.reason,
            judged.b.run_id if judged.b else run_id,
            judged.settle,
        )

    def _judged_latency(self, comparison: Comparison | None) -> LatencyComparison | None:
        return next(
            (latency for latency in (comparison.latency if comparison else ()) if latency.mode == self.mode),
            None,
        )

    def _counter(self, subject: _Subject, side: Side, metric: Metric) -> TableCell:
        comparison = self.comparisons.get(subject.name)
        change = _change_of(comparison, metric)
        if change is not None:
            state = PRESENT if change.b.number is not None else formatting.state_words(change.b)
            return TableCell(
                change.b,
                state,
                change.a,
                change.change_pct,
                change.verdict,
                change.interval,
                change.reason,
                side.launch_run_id,
            )
        if comparison is not None and self.launch is not None:
            reason = f"no launch pairs with {self.launch.base_name}: --pair {self.launch.base_name}=KERNEL"
            return TableCell(
                None, "no such launch", verdict=Verdict.MISSING, reason=reason, run_id=side.launch_run_id
            )
        value = self._own_value(side, metric)
        state = PRESENT if value.number is not None else formatting.state_words(value)
        is_baseline = subject is self.baseline
        reason = "" if is_baseline else f"{self.baseline.name} has nothing to hold it against"
        verdict = None if is_baseline else Verdict.MISSING
        return TableCell(value, state, verdict=verdict, reason=reason, run_id=side.launch_run_id)

    def notes(self) -> list[str]:
        """Which of several launches the counters are of, how many moved; of facts what has no column."""
        base = self.sides[self.baseline.name]
        if base is None or self.launch is None:
            return []
        if self.cell.evidence is not Evidence.MEASURED:
            return self._failures_without_column()
        others = len(base.launches) - 1
        if not others:
            return []
        place = " on ".join(filter(None, (self.cell.workload, self.cell.gpu)))
        is_moved = any(pair.verdict.traits.moved for whole in self.whole.values() for pair in whole.pairs)
        note = (
            f"{place or 'the reports'}: counters and ncu's duration are of {self.launch.base_name}, whose "
            f"time {'moved most' if is_moved else 'is the longest'}; "
            f"{others} more launch{'es' * (others > 1)}: --kernel"
        )
        return [note, *(f"{name}: {words}" for name in self.whole if (words := self._tally(name)))]

    def _tally(self, name: str) -> str:
        """How many launches of a subject got better and worse, and which moved most."""
        pairs = self.whole[name].pairs
        moved = [pair for pair in pairs if pair.verdict.traits.moved and pair.headline]
        if len(pairs) < 2:
            return ""
        most = max(moved, key=lambda pair: abs(_duration(pair.b) - _duration(pair.a)), default=None)
        words = tally(pair.verdict for pair in pairs)
        if most is None or most.headline is None:
            return words
        return f"{words}; most: {most.kernel} {formatting.change(most.headline.a, most.headline.b)}"


class _ModelledTime:
    """The modelled times on one workload and GPU: nobody judges them, for no GPU ran anything."""

    def __init__(self, cell: Cell, baseline: _Subject, subjects: Sequence[_Subject]) -> None:
        self.cell, self.baseline = cell, baseline
        self.sides: dict[str, Side | None] = {subject.name: None for subject in subjects}

    def columns(self, asked: bool) -> list[tuple[TableColumn, Metric | None]]:
        """The time alone, whatever is asked for, as with measured ones."""
        cell, words = self.cell, MODELLED_TIME.replace("_", " ")
        return [(TableColumn(cell.workload, cell.gpu, cell.evidence, MODELLED_TIME, words, "ns", "-"), None)]

    def cell_of(self, subject: _Subject, metric: Metric | None) -> TableCell:
        """The time with its ratio to the baseline's; UNCLEAR where the model cannot tell the two apart."""
        prediction = subject.predicted.get(self.cell)
        if prediction is None:
            return TableCell(None, WRONG if _why_wrong(subject, None) else "not modelled")
        if prediction.time_ns is None or prediction.low_ns is None or prediction.high_ns is None:
            return TableCell(None, "no model", reason=prediction.no_model)
        value = Value(prediction.time_ns, "ns")
        low, high = (
            str(formatting.quantity(Value(ns, "ns"))) for ns in (prediction.low_ns, prediction.high_ns)
        )
        reason = f"{low} to {high}"
        base = self.baseline.predicted.get(self.cell)
        if subject is self.baseline or base is None or base.time_ns is None:
            return TableCell(value, reason=reason)
        ratio = predicted_ratio(prediction.time_ns, base.time_ns, self.baseline.name, load_errors())
        return TableCell(
            value,
            PRESENT,
            Value(base.time_ns, "ns"),
            100 * (ratio.ratio - 1),
            Verdict.CHANGED if ratio.is_clear else Verdict.UNCLEAR,
            Interval(ratio.low - 1, ratio.high - 1),
            f"{reason}; {ratio.low:.2f} to {ratio.high:.2f} {formatting.TIMES} {self.baseline.name}",
        )

    def notes(self) -> list[str]:
        """None of its own."""
        return []


def _duration(launch: Launch) -> float:
    return launch.values.number(NCU_DURATION) or 0.0


def _change_of(comparison: Comparison | None, metric: Metric) -> MetricChange | None:
    changes = (change for pair in (comparison.pairs if comparison else ()) for change in pair.metrics)
    return next((change for change in changes if change.concept == metric.concept), None)


def _judge_together(places: Sequence[_TableCell], concepts: Collection[str]) -> None:
    """Judge the comparisons of all places as one table, as a gate does: time, and the counters shown."""
    keys = [(place, name) for place in places for name in place.judged if name in place.comparisons]
    judged = judge_comparisons_together(
        [place.comparisons[name] for place, name in keys], {_DURATION, *concepts}
    )
    for (place, name), comparison in zip(keys, judged, strict=True):
        if comparison is not None:
            place.comparisons[name] = comparison


def _document(
    places: Sequence[_TableCell | _ModelledTime],
    subjects: Sequence[_Subject],
    baseline: _Subject,
    table: MetricTable,
    metrics: Sequence[str],
    more_notes: Sequence[str],
) -> VersionTableDocument:
    columns = [(place, *column) for place in places for column in place.columns(bool(metrics))]
    rows = tuple(
        _row(
            subject,
            tuple(place.cell_of(subject, metric) for place, _, metric in columns),
            [place.sides[subject.name] for place in places],
            [column for _, column, _ in columns],
            baseline,
        )
        for subject in subjects
    )
    kinds = {place.cell.evidence for place in places}
    left_out = [
        f"{concept} is {table.by_concept[concept].evidence}, and nothing of these versions is"
        for concept in metrics
        if concept in table.by_concept and table.by_concept[concept].evidence not in kinds
    ]
    notes = [note for place in places for note in place.notes()]
    return VersionTableDocument(
        tuple(column for _, column, _ in columns),
        rows,
        tuple(dict.fromkeys((*left_out, *notes, *more_notes))),
    )


def _row(
    subject: _Subject,
    cells: tuple[TableCell, ...],
    sides: Sequence[Side | None],
    columns: Sequence[TableColumn],
    baseline: _Subject,
) -> TableRow:
    why = next(filter(None, (_why_wrong(subject, side) for side in (*sides, None))), "")
    state = subject.status.state if subject.status else ""
    reason = subject.status.reason if subject.status else ""
    if why and state in ("", GOOD):
        state = WRONG
    command = ""
    if not why and not any(
        cell.number is not None
        for column, cell in zip(columns, cells, strict=True)
        if column.evidence is Evidence.MEASURED
    ):
        command = _collect_command(subject, baseline)
    is_baseline = subject is baseline
    return TableRow(subject.name, cells, state, why or reason, command, is_baseline, subject.workloads)


def _why_wrong(subject: _Subject, side: Side | None) -> str:
    """Why a subject has no speed; "" where it has one. A version of a run is as its check says."""
    if side is not None and side.wrong:
        return side.wrong
    status = subject.status
    of_a_run = subject.version is not None and subject.version.run_id is not None
    if status is None or not status.is_wrong or (of_a_run and status.version.state == GOOD):
        return ""
    return status.reason or status.state


def _is_of_others(subject: _Subject, baseline: _Subject) -> bool:
    return subject.status is not None and subject.status.state == BASELINE and subject is not baseline


def _missing(subject: _Subject, baseline: _Subject) -> Verdict | None:
    return None if subject is baseline else Verdict.MISSING


def _collect_command(subject: _Subject, baseline: _Subject) -> str:
    """The command that measures a version beside the baseline; "" where no command can."""
    if subject.version is None or subject.status is None:
        return ""
    words = ["profiler", "collect", subject.version.version]
    if baseline.version and baseline is not subject and baseline.version.family == subject.version.family:
        words += ["--against", baseline.version.version]
    return shlex.join(words)
