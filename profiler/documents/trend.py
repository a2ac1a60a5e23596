"""One metric over versions or runs, as a document."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from profiler.bundles import location
from profiler.compare.kernel_pairs import Pairing
from profiler.documents.blocks import Block, Heading, Name, Notes, Table
from profiler.documents.document import Document
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence import formatting
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.naming import brief_list
from profiler.evidence.values import Evidence, State
from profiler.history.lineage import load_lineages
from profiler.history.trend import ABSENT, LATENCY, Trend, TrendPoint, load_trends

if TYPE_CHECKING:
    from profiler.documents.history import HistoryDocument
    from profiler.store.index import Store


_NUMBER = re.compile(r"\d+")
_KERNELS_NAMED = 3  # of those that ran in only one version
LAST_SHOWN = 8  # versions


@dataclass(frozen=True, repr=False)
class TrendDocument(Document):
    """The trends of one metric: a series for each kernel, workload, GPU and mode."""

    concept: str
    trends: tuple[Trend, ...]
    last: int = LAST_SHOWN  # the newest versions that are columns of a table

    columns = (
        "family",
        "workload",
        "gpu",
        "evidence",
        "mode",
        "kernel",
        "concept",
        "metric",
        "version",
        "run_id",
        "created",
        "value",
        "unit",
        "state",
        "breaks",
        "wrong",
        "derivation",
    )

    @property
    def title(self) -> str:
        """The metric, by its label."""
        return f"{self.trends[0].label} over versions"

    @property
    def sentences(self) -> Sequence[str]:
        """Why points must not be joined to those before them, each reason once."""
        return list(
            dict.fromkeys(point.breaks for trend in self.trends for point in trend.points if point.breaks)
        )

    def rows(self) -> list[tuple[object, ...]]:
        """A row a point, in base units; `state` says why there is no value."""
        return [
            (
                trend.family,
                trend.workload,
                trend.gpu,
                trend.evidence.value,
                trend.mode,
                trend.part,
                trend.concept,
                point.metric or None,
                point.version,
                point.run_id,
                point.created,
                None if point.gap == ABSENT else point.value.number,
                point.value.unit,
                _state(point),
                point.breaks or None,
                point.wrong,
                point.value.derivation.name if point.value.derivation else None,
            )
            for trend in self.trends
            for point in trend.points
        ]

    def _content(self) -> dict[str, object]:
        """The series, numbers in base units."""
        return {"concept": self.concept, "series": [_trend_dict(trend) for trend in self.trends]}

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A table for each family, workload, GPU and mode: the newest versions that have something to show.

        With `everything` versions without a value and kernels of only one version too.
        """
        for table in trend_tables(self.trends, self.last, every=everything):
            yield Heading(_heading(table.first))
            if table.trends:
                head = ["kernel", *(table.first.points[position].version for position in table.columns)]
                yield Table(head, _table_rows(table), right=range(1, len(head)))
            yield Notes(_table_notes(table))


@dataclass(frozen=True)
class TrendTable:
    """Trends of one family, workload, GPU and mode: which versions and kernels have something to show."""

    first: Trend  # says the family, workload, GPU and mode, also where no row is left
    trends: tuple[Trend, ...]  # a row each
    columns: tuple[int, ...]  # positions of the points that are shown, oldest first
    earlier: int  # versions with a value that came before the first column
    left_out: tuple[str, ...]  # a sentence for each reason why versions or kernels are not shown


def trend_tables(trends: Sequence[Trend], last: int, *, every: bool = False) -> list[TrendTable]:
    """The trends as tables of the newest `last` versions.

    Unless `every`: a version without a value of any kernel is no column, and a kernel with a number in
    only one version, or in none of those shown, is no row; both are counted in `left_out`.
    """
    return [_table(list(group), last, every) for _, group in groupby(trends, key=_place)]


def _heading(first: Trend) -> str:
    gpu = first.gpu or ("" if first.evidence is Evidence.MODELLED else "GPU unknown")
    where = ", ".join(filter(None, (first.workload, gpu, first.evidence, first.mode)))
    unit = f", {first.unit}" if formatting.is_long_unit(first.unit) else ""
    return f"{first.family}: {first.label}{unit} ({where})"


def _table_rows(table: TrendTable) -> list[list[str]]:
    """The name of each kernel and its points, all of them in one unit."""
    rows = []
    parts = {trend.part for trend in table.trends}
    for trend in table.trends:
        points = [trend.points[position] for position in table.columns]
        numbers = [abs(point.value.number) for point in points if point.value.number is not None]
        scale = formatting.scale_for(trend.unit, max(numbers)) if numbers else None
        if scale and formatting.is_long_unit(trend.unit):  # it stands in the table's head
            scale = formatting.Scale(scale.divisor, scale.unit.removesuffix(trend.unit).strip())
        # a kernel that is launched once needs no #0
        is_only = trend.part.endswith("#0") and f"{trend.part[:-1]}1" not in parts
        name = trend.part.removesuffix("#0") if is_only else trend.part
        rows.append([Name(f"{name}{trend.also}"), *(_cell(point, trend.unit, scale) for point in points)])
    return rows


def _cell(point: TrendPoint, unit: str, scale: formatting.Scale | None) -> str:
    if point.gap == ABSENT:
        return "·"
    text = str(formatting.quantity(point.value, scale if point.value.unit == unit else None))
    if point.wrong:
        return f"⊘ {text}"
    text = f"~ {text}" if point.value.derivation else text
    return f"| {text}" if point.breaks else text


def _table_notes(table: TrendTable) -> list[str]:
    """What is not shown, and what the signs before values stand for."""
    notes = [f"{table.earlier} earlier left out: --last N shows more"] if table.earlier else []
    if table.left_out:
        notes += [*table.left_out, "--all shows every version and kernel"]
    points = [trend.points[position] for trend in table.trends for position in table.columns]
    derivations = (point.value.derivation for point in points)
    breaks = dict.fromkeys(point.breaks for point in points if point.breaks)
    derived = dict.fromkeys(derivation.words for derivation in derivations if derivation)
    return [*notes, *(f"| {words}" for words in breaks), *(f"~ {words}" for words in derived)]


def _place(trend: Trend) -> tuple[object, ...]:
    return trend.family, trend.workload, trend.gpu, trend.evidence, trend.mode


def _table(trends: Sequence[Trend], last: int, every: bool) -> TrendTable:
    positions = range(len(trends[0].points))
    if every:
        return TrendTable(
            trends[0], tuple(trends), tuple(positions[-last:]), max(0, len(positions) - last), ()
        )
    with_number = [
        position
        for position in positions
        if any(trend.points[position].value.number is not None for trend in trends)
    ]
    columns = with_number[-last:] or list(positions[-last:])
    numbers = {
        id(trend): [n for n in columns if trend.points[n].value.number is not None] for trend in trends
    }
    # With one version to show there is nothing to compare a kernel with: all of them are rows.
    least = min(2, len(with_number))
    rows = [trend for trend in trends if len(numbers[id(trend)]) >= least]
    left_out = _versions_left_out(trends, [n for n in positions if n not in with_number])
    for position in columns:
        alone = [trend for trend in trends if trend not in rows and numbers[id(trend)] == [position]]
        if alone:
            left_out.append(_kernels_of_one_version(alone, position))
    left_out += _numbered_names([trend for trend in trends if trend not in rows])
    hidden = sum(not numbers[id(trend)] and trend not in rows for trend in trends)
    if hidden:
        left_out.append(f"{hidden} kernel{'s have' if hidden > 1 else ' has'} no number in these versions")
    earlier = max(0, len(with_number) - len(columns))
    return TrendTable(trends[0], tuple(rows), tuple(columns), earlier, tuple(left_out))


def _versions_left_out(trends: Sequence[Trend], positions: Sequence[int]) -> list[str]:
    """How many versions have no number at all, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for position in positions:
        points = [trend.points[position] for trend in trends]
        ran = [point for point in points if point.gap != ABSENT]
        reason = formatting.state_words(ran[0].value) if ran else "none of these kernels ran"
        by_reason.setdefault(reason, []).append(points[0].version)
    return [
        f"{len(names)} version{'s' * (len(names) > 1)} without a value, {reason}: {brief_list(names)}"
        for reason, names in by_reason.items()
    ]


def _kernels_of_one_version(trends: Sequence[Trend], position: int) -> str:
    """The kernels that have a number in only one version, the largest first."""
    largest = sorted(trends, key=lambda trend: -abs(trend.points[position].value.number or 0))
    named = [
        f"{trend.part.removesuffix('#0')} {formatting.quantity(trend.points[position].value)}"
        for trend in largest[:_KERNELS_NAMED]
    ]
    more = f" and {len(trends) - len(named)} more" if len(trends) > len(named) else ""
    return f"only in {trends[0].points[position].version}: {', '.join(named)}{more}"


def _numbered_names(trends: Sequence[Trend]) -> list[str]:
    """What makes kernels one whose names differ only in a number, and of which no version ran two."""
    by_pattern: dict[str, list[Trend]] = {}
    for trend in trends:
        if (pattern := _NUMBER.sub("*", trend.base_name)) != trend.base_name:
            by_pattern.setdefault(pattern, []).append(trend)
    sentences = []
    for pattern, of_pattern in by_pattern.items():
        names = {trend.base_name for trend in of_pattern}
        ran = Counter(
            point.version for trend in of_pattern for point in trend.points if point.value.number is not None
        )
        if len(names) > 1 and max(ran.values(), default=0) == 1:
            command = shlex.join(("profiler", "decide", "pair", trends[0].family, f"{pattern}={pattern}"))
            words = f"{len(names)} of these names differ only in a number: if they are one kernel,"
            sentences.append(f"{words} `{command}` makes them one row")
    return sentences


def trend_or_steps(
    concept: str,
    table: MetricTable,
    store: Store,
    *,
    family: str | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    evidence: Evidence | None = None,
    steps: bool = False,
    version: str | None = None,
    over: Literal["versions", "time"] | None = None,
    across: Collection[Literal["driver", "ncu"]] = (),
    last: int | None = None,
    data: str | None = None,
) -> TrendDocument | HistoryDocument:
    """One metric over versions or runs, and when it changed.

    A table for each workload and GPU: one row a kernel, one column a version. Signs before a value: | not
    comparable with the value to its left (the driver, ncu version, grid, counter or unit changed), ~ derived
    from other counters, ⊘ the version is wrong. · means that the kernel did not run; other gaps show their
    state. Versions without a value, and kernels that only one version has, are counted below the table
    (`--all` of the command lists them). Versions come in the order of the catalogue in the family's newest
    run. Without a catalogue, the version that was seen first comes first.

    With steps (`--steps`) it lists when the metric changed instead: for each kernel between which runs it
    changed, by how much, and what else changed there: driver, ncu, CUDA, GPU, clocks, flags, and whether the
    machine code did. A step with the same machine code and source is "changed", due to the environment. Runs
    are ordered by when they were made. Where runs hold several versions, each version has a history over its
    runs, and the newest run of each version makes one more history over the versions, in the catalogue's
    order.

    A level that was there before is "back in a known state", and one that was left for an older one "did not
    last": with the same machine code these are states of the machine, and not judged. A slow drift is not a
    step. A step needs 8 points, 2 of them after it. A change in only the last point is judged by `profiler
    compare`.

    Arguments:
        concept: a concept such as duration, an exact ncu name, or with steps latency (medians of calls)
        steps: list when it changed, and what else changed then
        version: with steps: only this version, over its runs
        over: versions (the default), or time for every run; not with steps
        across: treat values as comparable although this changes (repeatable); not with steps
        last: only the newest N versions (default: 8); not with steps

    Raises UnknownName, and CannotJudge where nothing carries the metric.

        profiler.trend("duration", family="attention").to_frame()[["version", "value", "unit"]]
        profiler.trend("latency", steps=True).sentences
    """
    place = {"family": family, "workload": workload, "gpu": gpu, "kernel": kernel}
    asked: dict[str, Any] = {**place, "evidence": evidence, "data": data}
    if not steps:
        if version is not None:
            raise UnknownName("--version needs --steps", option="--version")
        if concept == LATENCY:
            raise UnknownName("latency is shown only as a list of steps: add --steps (in Python steps=True)")
        shown: dict[str, Any] = {"over": over or "versions", "across": across, "last": last or LAST_SHOWN}
        return load_trend(concept, table, store, **asked, **shown)
    from profiler.documents.history import find_history

    for option, value in (("over", over), ("across", across), ("last", last)):
        if value:
            raise UnknownName(f"--{option} does not go with --steps", option=f"--{option}")
    return find_history(concept, table, store, version=version, **asked)


def load_trend(
    concept: str,
    table: MetricTable,
    store: Store,
    *,
    family: str | None = None,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    evidence: Evidence | None = None,
    over: Literal["versions", "time"] = "versions",
    across: Collection[str] = (),
    last: int = LAST_SHOWN,
    data: str | None = None,
) -> TrendDocument:
    """A concept or exact ncu name over versions, in the order of the catalogues, or over all runs.

    `across` names what may change without a break: driver, ncu; `last` is how many versions `blocks` shows,
    the newest; `data` is the folder or URL of the index's bundles, PROFILER_DATA's where None. Raises
    UnknownName, and CannotJudge where no launch carries it.
    """
    lineages = load_lineages(location.open_root(data), store, family)
    trends = load_trends(
        store,
        concept,
        table,
        family=family,
        workload=workload,
        gpu=gpu,
        kernel=kernel,
        evidence=evidence,
        over=over,
        across=across,
        orders={name: lineage.order for name, lineage in lineages.items()},
        wrong={name: lineage.wrong for name, lineage in lineages.items()},
        pairing=Pairing.of_data(data),
    )
    if not trends:
        static = table.by_concept.get(f"static_{concept}")
        way_out = "import reports with it (`profiler import PATH`)"
        if (
            static
            and evidence is not Evidence.MEASURED
            and load_trends(store, static.concept, table, family=family)
        ):
            way_out = f"compiled versions have: `profiler trend {static.concept}`"
        raise CannotJudge(f"no requested launch has {concept}; {way_out}")
    return TrendDocument(concept, tuple(trends), last)


def _trend_dict(trend: Trend) -> dict[str, object]:
    return {
        "concept": trend.concept,
        "label": trend.label,
        "family": trend.family,
        "workload": trend.workload,
        "gpu": trend.gpu,
        "evidence": trend.evidence.value,
        "mode": trend.mode,
        "part": trend.part,
        "kernel": trend.base_name,
        "other_names": trend.other_names,
        "unit": trend.unit,
        "points": [_point_dict(point) for point in trend.points],
    }


def _point_dict(point: TrendPoint) -> dict[str, object]:
    return {
        "run_id": point.run_id,
        "version": point.version,
        "created": point.created.isoformat(),
        "metric": point.metric or None,
        "kernel": point.kernel or None,
        **(formatting.as_json(point.value) if point.gap != ABSENT else {"state": ABSENT}),
        "grid": point.grid,
        "block": point.block,
        "breaks": point.breaks or None,
        "wrong": point.wrong,
    }


def _state(point: TrendPoint) -> str | None:
    if point.gap == ABSENT:
        return ABSENT
    return None if point.value.state is State.PRESENT else point.value.state.words
