"""The numbers of each launch of a report, run or version, as a document."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from profiler.compare.match_launches import kernel_filter, launch_labels
from profiler.compare.resolve_names import is_file_name, refuse_unused_filters
from profiler.documents.asking import side_of
from profiler.documents.blocks import Block, Heading, Line, Name, Notes, Table
from profiler.documents.document import Document
from profiler.errors import UnknownName
from profiler.evidence import formatting
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import Metric, MetricTable
from profiler.evidence.naming import brief_list
from profiler.evidence.side import Latency, Side
from profiler.evidence.values import NCU_DURATION, MetricSet, State, Value, is_over_peak

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener

SHOWN = 10  # launches that people get unasked
_METRICS_HEAD = ("group", "metric", "value", "", "ncu metric")


@dataclass(frozen=True)
class LaunchSelection:
    """The launches of a side that were asked for, each with its label, in the report's order."""

    side: Side
    launches: tuple[tuple[str, Launch], ...]
    hidden: int = 0  # shorter launches that `top` left out

    def longest(self, count: int | None) -> LaunchSelection:
        """The launches that take longest, in their own order.

        A launch without a duration counts as long: it wants attention.
        """
        if count is None or len(self.launches) <= count:
            return self
        order = sorted(range(len(self.launches)), key=lambda index: _minus_duration(self.launches[index][1]))
        chosen = tuple(self.launches[index] for index in sorted(order[:count]))
        return LaunchSelection(self.side, chosen, self.hidden + len(self.launches) - count)


class _Split(NamedTuple):
    """The metrics of a document: those shown; of the others, those that were read, and the rest."""

    shown: tuple[Metric, ...]
    read: tuple[Metric, ...]
    unread: tuple[Metric, ...]


@dataclass(frozen=True, repr=False)
class LaunchesDocument(Document):
    """The launches of a side with their metrics: those of metrics.txt, or every one that the report holds."""

    selection: LaunchSelection
    table: MetricTable
    every_metric: bool = False
    concepts: frozenset[str] | None = None  # of metrics.txt, the only ones shown; None: all
    all_read: bool = True  # whether the values of those that are not shown were read of a report, too
    top: int | None = None  # how many launches were asked for; None: all, of which people get SHOWN

    columns = ("kernel", "group", "concept", "metric", "value", "unit", "state")

    @property
    def side(self) -> Side:
        """What the launches are of."""
        return self.selection.side

    @property
    def title(self) -> str:
        """The side, its GPU, and when and by what it was profiled."""
        return f"{self.side.label}{self._origin}"

    @property
    def _origin(self) -> str:
        """Its GPU, and when and by what it was profiled."""
        side = self.side
        made = formatting.timestamp(side.launch_session.created)
        ncu = side.launch_session.ncu_version or "unknown"
        return f": {', '.join(side.gpus) or 'GPU unknown'}, ncu {ncu}, made {made}"

    @property
    def sentences(self) -> Sequence[str]:
        """The latency of a call in each mode, and where there are no launches."""
        lines = []
        for latency in timed_calls(self.side):
            quantity = formatting.quantity(Value(_typical_ns(latency), "ns"))
            lines.append(f"latency, {latency.mode}: {quantity} a call, {len(latency.ns)} samples")
        if not self.side.launches:
            lines.append("no launch with counters here: no report of it was collected or imported")
        return lines

    def metrics(self, launch: Launch) -> list[tuple[str, str, Value]]:
        """Concept, ncu name and value of the metrics of metrics.txt that are of this evidence, and chosen."""
        chip = chip_of(self.side.capability_of(launch))
        named = launch.values.metric_set
        absent = self._absent.get((named, chip))
        if absent is None:
            absent = self._absent[named, chip] = {
                metric.concept: self.table.resolve(metric, {}, chip)
                for metric in self._split.shown
                if not metric.is_in(named.position, chip)
            }
        return [
            (metric.concept, *(absent.get(metric.concept) or self.table.resolve(metric, launch.values, chip)))
            for metric in self._split.shown
        ]

    @property
    def is_decided(self) -> bool:
        """Whether its JSON needs no number that was not read."""
        return None not in self._others

    @cached_property
    def _others(self) -> list[tuple[frozenset[str], int, bool] | None]:
        """What each launch has besides the metrics shown."""
        return [self._others_of(launch) for _, launch in self.selection.launches]

    def _others_of(self, launch: Launch) -> tuple[frozenset[str], int, bool] | None:
        """What a launch has besides the metrics shown: names, how many more, whether one was not collected.

        None where that takes numbers that were not read.
        """
        chip = chip_of(self.side.capability_of(launch))
        resolved = [metric.resolve(launch.values, chip) for metric in self._split.read]
        there = [(name, value) for name, value in resolved if value.state is not State.NOT_AVAILABLE]
        names = frozenset(name for name, _ in there)
        is_lacking = any(value.state is State.NOT_COLLECTED for _, value in there)
        if not self._split.unread:
            return names, 0, is_lacking
        known = launch.values.metric_set, launch.unread, chip
        if known not in self._unread:
            self._unread[known] = unread_metrics(self._split.unread, launch, chip)
        unread = self._unread[known]
        if unread is None or (unread.may_lack and not (is_lacking or unread.is_lacking)):
            return None
        return names, unread.count, is_lacking or unread.is_lacking

    @cached_property
    def _split(self) -> _Split:
        """The metrics of this evidence by what is known of them."""
        of_evidence = self.table.of(self.side.evidence)
        if self.concepts is None:
            return _Split(of_evidence, (), ())
        shown = tuple(metric for metric in of_evidence if metric.concept in self.concepts)
        others = [metric for metric in of_evidence if metric.concept not in self.concepts]
        is_read = [self.all_read or metric.concept in self.table.sharing_names for metric in others]
        return _Split(
            shown,
            tuple(itertools.compress(others, is_read)),
            tuple(itertools.compress(others, map(operator.not_, is_read))),
        )

    @cached_property
    def _unread(self) -> dict[tuple[MetricSet, frozenset[str] | None, str | None], UnreadMetrics | None]:
        """What is known of launches that have the same metrics: in most reports, all."""
        return {}

    @cached_property
    def _absent(self) -> dict[tuple[MetricSet, str | None], dict[str, tuple[str, Value]]]:
        """How the metrics are shown that launches with these names lack: most of them, in most reports."""
        return {}

    def rows(self) -> list[tuple[object, ...]]:
        """A row a metric of a launch, in base units; a state other than present has no value."""
        return [(kernel, *row) for kernel, launch in self.selection.launches for row in self._rows(launch)]

    def _content(self) -> dict[str, object]:
        """Every metric of the report by its exact name, or those of metrics.txt, in base units."""
        side = self.side
        return {
            "source": side.label,
            "gpu": side.gpu,
            "gpus": list(side.gpus),
            "ncu_version": side.launch_session.ncu_version,
            "latency": [
                {
                    "mode": latency.mode,
                    "run": latency.run_id,
                    "ns": _typical_ns(latency),
                    "samples": len(latency.ns),
                }
                for latency in timed_calls(side)
            ],
            "launches": [
                {
                    "kernel": launch.base_name,
                    "part": label,
                    "demangled": launch.demangled,
                    "grid": launch.grid,
                    "block": launch.block,
                    "nvtx": launch.nvtx,
                    "ordinal": launch.ordinal,
                    **self._metrics_dict(index, launch),
                }
                for index, (label, launch) in enumerate(self.selection.launches)
            ],
            "hidden_launches": self.selection.hidden,
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A table a launch, group by group; what has no number is named below it, by the reason.

        With `everything` every metric of the report. Without `top` the SHOWN launches that take longest.
        """
        yield Heading((Name(self.side.label), self._origin), 1)
        yield from map(Line, self.sentences)
        selection = self.selection.longest(self.top or SHOWN)
        for label, launch in selection.launches:
            yield Heading(launch_heading(label, launch))
            yield from _metric_blocks(launch) if everything or self.every_metric else self._groups(launch)
        yield from hidden_blocks(selection)

    def _groups(self, launch: Launch) -> Iterator[Block]:
        rows: list[tuple[str, ...]] = []
        concepts_by_state: dict[str, list[str]] = {}
        last_group = ""
        for concept, name, value in self.metrics(launch):
            metric = self.table.by_concept[concept]
            if value.state is not State.PRESENT:
                words = formatting.state_words(value, explained=True)
                concepts_by_state.setdefault(words, []).append(concept)
                continue
            quantity = formatting.quantity(value)
            group = metric.group if metric.group != last_group else ""
            last_group = metric.group
            rows.append((group, metric.label, quantity.number, _unit(name, value, quantity.unit), name))
        yield Table(_METRICS_HEAD, rows, right=(2,))
        yield Notes([f"{state}: {', '.join(concepts)}" for state, concepts in concepts_by_state.items()])

    def _rows(self, launch: Launch) -> Iterator[tuple[object, ...]]:
        if self.every_metric:
            for name, value in launch.values.items():
                yield (None, None, name, *_value_columns(value))
            return
        for concept, name, value in self.metrics(launch):
            yield (self.table.by_concept[concept].group, concept, name, *_value_columns(value))

    def _metrics_dict(self, index: int, launch: Launch) -> dict[str, object]:
        """An entry for each ncu name, which may stand for several concepts; the concepts the chip lacks."""
        if self.every_metric:
            return {"metrics": {name: _value_dict(name, value) for name, value in launch.values.items()}}
        metrics: dict[str, dict[str, object]] = {}
        concepts: dict[str, list[str]] = {}
        not_available = []
        for concept, name, value in self.metrics(launch):
            # The name is another chip's then, and may stand for another concept on this one.
            if value.state is State.NOT_AVAILABLE:
                not_available.append(concept)
                continue
            concepts.setdefault(name, []).append(concept)
            metrics[name] = {
                **_value_dict(name, value),
                "concept": concepts[name][0],
                "concepts": concepts[name],
            }
        if self.concepts is not None:
            others = self._others[index]
            assert others is not None
            names, unread, is_lacking = others
            total = len(names | metrics.keys()) + unread
            return {"metrics": metrics, "metrics_total": total, "others_not_collected": is_lacking}
        return {"metrics": metrics, "not_available": not_available}


@dataclass(frozen=True)
class UnreadMetrics:
    """What a launch has of metrics of which no value was read, by the names that its report has."""

    count: int  # those that its chip has: each has a name of its own
    is_lacking: bool  # whether one of them was not collected
    may_lack: bool  # whether one of them was not, unless it can be computed from others


def unread_metrics(metrics: Sequence[Metric], launch: Launch, chip: str | None) -> UnreadMetrics | None:
    """What a launch has of metrics that share no name with another; None where nobody knows its names."""
    if launch.unread is None:
        return None
    stored = launch.unread | launch.values.metric_set.position.keys()
    count, is_lacking = 0, []
    for metric in metrics:
        if names := metric.names_for(chip):
            count += 1
            if stored.isdisjoint(names):
                is_lacking.append(not metric.is_in(stored, chip))
    return UnreadMetrics(count, any(is_lacking), not all(is_lacking))


def launches_of_name(
    name: str,
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    top: int | None = None,
    every_metric: bool = False,
    data: str | None = None,
    whole: bool = True,
    concepts: frozenset[str] | None = None,
) -> LaunchesDocument:
    """The launches of a report file, run or version.

    whole: read all of a report file, not only the metrics that the document shows. concepts: those of
    metrics.txt that its JSON has, with the number of all.
    Raises UnknownName, UnreadableReport, and CannotJudge for a version without results.
    """
    refuse_unused_filters((name,), workload)

    def read(metrics: Collection[str] | None, all_read: bool = True) -> LaunchesDocument:
        side = side_of(name, store_opener, workload, gpu, data, metrics)
        selection = select_launches(side, kernel, top)
        return LaunchesDocument(selection, table, every_metric, concepts, all_read, top)

    if whole or every_metric:
        return read(None)
    if concepts is not None:
        read_of = concepts | table.sharing_names
        needed = [metric.needed_names for metric in table.metrics if metric.concept in read_of]
        document = read({NCU_DURATION}.union(*needed), all_read=not is_file_name(name))
        if document.is_decided:
            return document
    return read(table.measured_names)


def select_launches(side: Side, kernel: str | None = None, top: int | None = None) -> LaunchSelection:
    """The launches that fit `kernel`, of them the `top` longest. Raises UnknownName where none fits."""
    fits = kernel_filter(kernel)
    labelled = zip(launch_labels(side.launches), side.launches, strict=True)
    launches = tuple((label, launch) for label, launch in labelled if fits(launch))
    if not launches and kernel is not None:
        names = sorted({launch.base_name for launch in side.launches})
        raise UnknownName(f"no kernel matches {kernel!r} in {side.label}; there are {brief_list(names)}")
    return LaunchSelection(side, launches).longest(top)


def launch_heading(label: str, launch: Launch) -> tuple[str, ...]:
    """What a launch is called, and its size."""
    grid, block = formatting.dimensions(launch.grid), formatting.dimensions(launch.block)
    return Name(label), f"  grid {grid}, block {block}"


def hidden_blocks(selection: LaunchSelection) -> Iterator[Block]:
    """How many launches were left out."""
    if selection.hidden:
        yield Line(f"and {selection.hidden} shorter launches: --top N, or --kernel PATTERN")


def timed_calls(side: Side) -> list[Latency]:
    """The newest timed calls of each mode."""
    newest = {latency.mode: latency for latency in reversed(side.latencies) if len(latency.ns)}
    modes = dict.fromkeys(latency.mode for latency in side.latencies)
    return [newest[mode] for mode in modes if mode in newest]


def _typical_ns(latency: Latency) -> float:
    """Nanoseconds of a call: the median, or the mean of short ones."""
    from profiler.statistics.noise_floor import typical_ns

    return float(typical_ns(latency.ns))


def _value_columns(value: Value) -> tuple[object, str, str]:
    """Value, unit and state."""
    if value.state is not State.PRESENT:
        return None, value.unit, formatting.state_words(value)
    return value.text if value.number is None else value.number, value.unit, "present"


def _metric_blocks(launch: Launch) -> Iterator[Block]:
    """Every metric of a launch as the report has it, in base units."""
    rows = []
    for name, value in launch.values.items():
        if value.state is not State.PRESENT:
            rows.append((name, formatting.state_words(value), ""))
        else:
            number = value.text or "" if value.number is None else str(value.number)
            rows.append((name, number, _unit(name, value, value.unit)))
    yield Table(("metric", "value", "unit"), rows, right=(1,))


def _unit(name: str, value: Value, unit: str) -> str:
    """The unit as it is shown, with a mark where the number is over its peak."""
    return f"{unit} (over its peak)" if is_over_peak(name, value) else unit


def _value_dict(name: str, value: Value) -> dict[str, object]:
    """A value for JSON; `over_peak` stands only where it is true."""
    return {**formatting.as_json(value), **({"over_peak": True} if is_over_peak(name, value) else {})}


def _minus_duration(launch: Launch) -> float:
    duration = launch.values.number(NCU_DURATION)
    return float("-inf") if duration is None else -duration
