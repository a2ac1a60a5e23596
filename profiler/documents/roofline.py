"""Where launches stand under the roofs of their GPU, as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from profiler.compare.resolve_names import refuse_unused_filters, resolve_measured
from profiler.documents.asking import Subject, names_among, side_of
from profiler.documents.blocks import (
    Block,
    Heading,
    Hinted,
    Line,
    Name,
    Notes,
    Number,
    Phrase,
    Share,
    Table,
    plain,
)
from profiler.documents.document import Document
from profiler.documents.launches import LaunchSelection, hidden_blocks, launch_heading, select_launches
from profiler.errors import Exit
from profiler.evidence import formatting
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.rollups import Rate
from profiler.evidence.values import Evidence, Value
from profiler.explain.roofline import (
    LEVELS,
    UNUSED,
    Roof,
    Roofline,
    RooflinePoint,
    collect_command,
    roofline_of,
)
from profiler.history.without_results import versions_without_results_explained

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener


_KERNELS_NAMED = 8
_Pointless: TypeAlias = "tuple[str, str, Roofline]"  # label, kernel and roofline of a launch without a point


@dataclass(frozen=True, repr=False)
class RooflineDocument(Document):
    """The rooflines of a side's launches."""

    selection: LaunchSelection
    rooflines: tuple[Roofline, ...]  # one a launch of the selection

    columns = ("kernel", "roof", "kind", "unit", "reached", "peak", "share", "nearest")
    numbers_are = Evidence.MEASURED.value

    @property
    def title(self) -> str:
        """The side and its GPU."""
        side = self.selection.side
        gpus, ncu = ", ".join(side.gpus), side.launch_session.ncu_version
        return f"{side.label}: {gpus or 'GPU unknown'}, ncu {ncu or 'unknown'}"

    @property
    def sentences(self) -> Sequence[str]:
        """The nearest roof of each launch, and why launches have no point, once for all of one reason."""
        sentences = []
        kernels_by_reason: dict[str, list[str]] = {}
        for (label, launch), roofline in zip(self.selection.launches, self.rooflines, strict=True):
            if (nearest := roofline.nearest_known) is not None:
                words = roofline.rank_words(nearest)
                sentences.append(f"{label}: {words} {nearest.name}, {Share(nearest.share)} of it reached")
            if reason := why_no_point(roofline):
                kernels_by_reason.setdefault(reason, []).append(launch.base_name)
        for reason, kernels in kernels_by_reason.items():
            sentences.append(no_point_words(kernels, reason))
        return sentences

    @property
    def exit_code(self) -> Exit:
        """3 where no launch has a point."""
        return Exit.PASS if any(roofline.points for roofline in self.rooflines) else Exit.UNJUDGED

    def rows(self) -> list[tuple[object, ...]]:
        """A row a roof of a launch: FLOP/s, op/s or byte/s, the share of the peak from 0 to 1.

        None is the nearest where the share of one is unknown.
        The points under the roofs stand in `rooflines`.
        """
        return [
            (label, *_roof_row(roof, kind), roof is roofline.nearest)
            for (label, _), roofline in zip(self.selection.launches, self.rooflines, strict=True)
            for kind, roofs in (("arithmetic", roofline.precisions), ("memory", roofline.levels))
            for roof in roofs
        ]

    def _content(self) -> dict[str, object]:
        """Rates are in FLOP/s or op/s and byte/s, intensities in operations per byte."""
        side = self.selection.side
        return {
            "source": side.label,
            "gpu": side.gpu,
            "gpus": list(side.gpus),
            "ncu_version": side.launch_session.ncu_version,
            "launches": [
                {
                    "kernel": launch.base_name,
                    "part": label,
                    "ordinal": launch.ordinal,
                    "precisions": [{**_roof_dict(roof), "state": roof.state} for roof in roofline.precisions],
                    "levels": [_roof_dict(roof) for roof in roofline.levels],
                    "points": [_point_dict(point) for point in roofline.points],
                    "why_no_point": why_no_point(roofline) or None,
                    "nearest_roof": roofline.nearest.name if roofline.nearest else None,
                    "nearest_known_roof": roofline.nearest_known.name if roofline.nearest_known else None,
                    "missing": [
                        {"roof": roof, "metric": metric, "state": state}
                        for roof, metrics in roofline.missing.items()
                        for metric, state in metrics
                    ],
                    "notes": [note.replace("`", "") for note in roofline.notes],
                }
                for (label, launch), roofline in zip(self.selection.launches, self.rooflines, strict=True)
            ],
            "hidden_launches": self.selection.hidden,
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A table of roofs and one of points for each launch; what several have in common once, below."""
        selection = self.selection
        yield Heading(self.title, 1)
        notes = [[line.replace("`", "") for line in _notes(roofline)] for roofline in self.rooflines]
        shared = (
            [line for line in notes[0] if all(line in lines for lines in notes)] if len(notes) > 1 else []
        )
        pointless: dict[tuple[str, tuple[str, ...]], list[_Pointless]] = {}
        for (label, launch), roofline, lines in zip(selection.launches, self.rooflines, notes, strict=True):
            own = [line for line in lines if line not in shared]
            if reason := why_no_point(roofline):
                pointless.setdefault((reason, tuple(own)), []).append((label, launch.base_name, roofline))
            if not reason or _reached_any(roofline):
                yield Heading(launch_heading(label, launch))
                yield from _tables(roofline)
                yield Notes([] if reason else own)
        for (reason, same), launches in pointless.items():
            yield from _pointless_blocks(reason, same, launches)
        if shared:
            yield Heading("every launch")
            yield Notes(shared)
        if any(roofline.missing for roofline in self.rooflines):
            chips = {chip_of(selection.side.capability_of(launch)) for _, launch in selection.launches}
            command = collect_command(chips.pop() if len(chips) == 1 else None)
            yield Line(Name(command), label="to collect all that is missing")
        yield from hidden_blocks(selection)


def rooflines_of_name(
    name: Subject,
    table: MetricTable,
    store_opener: StoreOpener,
    *,
    workload: str | None = None,
    gpu: str | None = None,
    kernel: str | None = None,
    top: int | None = None,
    data: str | None = None,
) -> RooflineDocument:
    """Launches under the rooflines of their GPU.

    For each launch: the peaks at its own clocks (fp64, fp32, fp16, tensor cores by type; L1, L2, DRAM), how
    much of each it reached, and its arithmetic intensity at each level. All come from the
    report's own metrics; what it lacks is listed with its state. Exit code 3 if no launch has a point.

    Raises UnknownName, UnreadableReport, and CannotJudge for what no GPU measured. Rates are in FLOP/s and
    byte/s, shares from 0 to 1.

        r = profiler.roofline("a.ncu-rep", kernel="flash*")
        r.sentences
        r.rooflines[0].points
    """
    refuse_unused_filters(names_among((name,)), workload)
    if isinstance(name, str):
        with versions_without_results_explained((name,), store_opener, data):
            side = resolve_measured(name, store_opener, workload, gpu)
    else:
        side = side_of(name, store_opener, workload, gpu, data)
    selection = select_launches(side, kernel, top)
    ncu = side.launch_session.ncu_version
    rooflines = (
        roofline_of(launch, table, chip_of(side.capability_of(launch)), ncu)
        for _, launch in selection.launches
    )
    return RooflineDocument(selection, tuple(rooflines))


def why_no_point(roofline: Roofline) -> str:
    """What a launch lacks for a point under its roofs; "" for one that has a point.

    A point takes operations and bytes of one launch: metrics that were not collected, or that counted none.
    """
    if roofline.points:
        return ""
    lacking = []
    for words, roofs in (("FLOPs", roofline.precisions), ("bytes", roofline.levels)):
        rates = [roof.rate.number for roof in roofs]
        if not any(rates):
            lacking.append(f"no {words} ({'not collected' if None in rates else 'all counts are 0'})")
    return " and ".join(lacking)


def no_point_words(kernels: Sequence[str], reason: str) -> str:
    """`2 launches (a 2) have no FLOPs (not collected)`: what launches lack for a point."""
    return f"{counted_kernels(kernels)} {'has' if len(kernels) == 1 else 'have'} {reason}"


def counted_kernels(kernels: Sequence[str]) -> str:
    """How many launches of which kernels: `8 launches (a 5, b 3)`, the most frequent first."""
    number = f"{len(kernels)} launch{'es' * (len(kernels) != 1)}"
    counts = Counter(kernels).most_common()
    named = [f"{kernel} {count}" if len(kernels) > 1 else kernel for kernel, count in counts[:_KERNELS_NAMED]]
    if len(counts) > _KERNELS_NAMED:
        named.append(f"{len(counts) - _KERNELS_NAMED} more kernels")
    return f"{number} ({', '.join(named)})"


def _reached_any(roofline: Roofline) -> bool:
    """Whether the launch reached anything of any roof."""
    return any(roof.rate.number for roof in roofline.roofs)


def _tables(roofline: Roofline) -> Iterator[Block]:
    """The roofs, then the points under them."""
    if roofline_cells := _roof_cells(roofline):
        yield _roof_table(roofline_cells)
    if roofline.points:
        yield point_table(roofline)


def roof_table(roofline: Roofline) -> Table:
    """A row a roof: what was reached of its peak. A precision that the launch does not use is none of it."""
    return _roof_table(_roof_cells(roofline))


def _roof_table(rows: Sequence[Sequence[Phrase]]) -> Table:
    return Table(("roof", "reached", "peak at its clocks", "% of roof", ""), rows, right=(1, 2, 3))


def point_table(roofline: Roofline) -> Table:
    """A row a precision and level: intensity, where the two roofs meet, which of them limits."""
    units = {point.unit for point in roofline.points}
    work = "FLOP" if units == {"FLOP/s"} else "op"
    points = [
        (
            point.precision,
            point.level,
            formatting.digits(point.intensity, whole=False),
            "–" if point.knee is None else formatting.digits(point.knee, whole=False),
            point.bound_words,
            Share(point.share),
        )
        for point in roofline.points
    ]
    head = ("precision", "level", f"arithmetic intensity ({work}/B)", "ridge point", "bound", "% of roof")
    return Table(head, points, right=(2, 3, 5), wide=(3,))


def missing_blocks(roofline: Roofline, chip: str | None, levels: Sequence[str] = LEVELS) -> Iterator[Block]:
    """What the roofs lack, of the levels of memory that are asked for, and the command that collects it."""
    levels_shown = tuple(roof for roof in roofline.levels if roof.name in levels)
    shown = replace(roofline, levels=levels_shown)
    yield Notes(_notes(shown))
    if shown.missing:
        yield Line(Name(collect_command(chip)), label="to collect all that is missing")


def _roof_cells(roofline: Roofline) -> list[tuple[Phrase, ...]]:
    rows: list[tuple[Phrase, ...]] = []
    for roof in roofline.roofs:
        if roof.rate.number or (roof.peak.number and roof.state != UNUSED):
            names = ", ".join((*roof.rate.names, *roof.peak.names))
            rates = (_quantity(roof.rate, roof.unit), _quantity(roof.peak, roof.unit))
            rows.append((Hinted(roof.name, names), *rates, Share(roof.share), roofline.rank_words(roof)))
    return rows


def _pointless_blocks(reason: str, same: Sequence[str], launches: Sequence[_Pointless]) -> Iterator[Block]:
    """Why launches have no point, what they have in common, and the peaks where no table shows them."""
    yield Heading(no_point_words([kernel for _, kernel, _ in launches], reason))
    label, _, roofline = launches[0]
    cells = [] if _reached_any(roofline) else _roof_cells(roofline)
    peaks = ", ".join(f"{plain(name)} {plain(peak)}" for name, _, peak, *_ in cells)
    yield Notes([*same, *([f"peaks, of {label}: {peaks}"] if peaks else [])])


def _notes(roofline: Roofline) -> list[str]:
    """The metrics that each roof lacks, by their state, and what a reader has to know; code in backticks."""
    metrics: dict[tuple[str, str], list[str]] = {}
    for roof, missing in roofline.missing.items():
        for metric, state in missing:
            metrics.setdefault((roof, state), []).append(metric)
    opcodes = {roof.name: f" (its code has {roof.opcodes})" for roof in roofline.precisions if roof.opcodes}
    lacking = (
        f"{roof}{opcodes.get(roof, '')}: {state}: {', '.join(f'`{name}`' for name in names)}"
        for (roof, state), names in metrics.items()
    )
    return [*lacking, *roofline.notes]


def _quantity(rate: Rate, unit: str) -> Phrase:
    return "–" if rate.number is None else Number(Value(rate.number, unit))


def _roof_row(roof: Roof, kind: str) -> tuple[object, ...]:
    return (roof.name, kind, roof.unit, roof.rate.number, roof.peak.number, roof.share)


def _roof_dict(roof: Roof) -> dict[str, object]:
    return {
        "name": roof.name,
        "unit": roof.unit,
        "reached": roof.rate.number,
        "peak": roof.peak.number,
        "share": roof.share,
        "reached_by": roof.rate.names,
        "peak_by": roof.peak.names,
    }


def _point_dict(point: RooflinePoint) -> dict[str, object]:
    return {
        "precision": point.precision,
        "level": point.level,
        "intensity": point.intensity,
        "reached": point.reached,
        "unit": point.unit,
        "knee": point.knee,
        "attainable": point.attainable,
        "limited_by": point.bound,
        "share": point.share,
    }
